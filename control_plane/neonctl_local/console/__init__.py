"""The console: web pages for the keys, operations and branches of the local control plane."""
