"""Draws the pictures of docs/waiting.md from what the library does on a fake clock."""
