"""Functions of a branch, and their deployments."""
