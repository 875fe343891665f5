"""Custom domains of a branch."""
