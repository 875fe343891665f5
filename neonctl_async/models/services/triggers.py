"""Triggers of a branch."""
