"""Draws the pictures of two pages on waiting from simulated waits on a fake clock."""
