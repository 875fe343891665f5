"""Draws the pictures of docs/waiting.md from simulated waits on a fake clock."""
