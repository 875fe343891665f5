"""Draws the pictures of docs/waiting.md and docs/polling.md from simulated waits on a fake clock."""
