"""Runs SQL statements for the console."""
