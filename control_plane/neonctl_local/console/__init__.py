"""The console: pages in a browser for keys, operations and branches of the local control plane."""
