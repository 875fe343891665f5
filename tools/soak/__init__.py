"""Kills a local control plane under load, and compares its data with the responses."""
