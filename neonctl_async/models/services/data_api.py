"""The Data API: HTTP access to a database of a branch."""
