"""Logs of a branch."""
