"""Makes docs/reference, a page for each resource of NeonClient, from the docstrings."""
