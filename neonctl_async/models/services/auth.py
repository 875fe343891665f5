"""Neon Auth of a branch: users, sign-in providers, domains and settings."""
