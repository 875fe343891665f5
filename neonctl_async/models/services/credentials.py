"""Credentials of a branch: tokens for its services."""
