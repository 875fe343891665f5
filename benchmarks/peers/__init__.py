"""The compared clients, each behind the same interface."""
