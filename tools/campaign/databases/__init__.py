"""Kills and API faults while databases are used, and a comparison of every row at the end."""
