"""Kills a local control plane while clients change it, and compares its data with the responses."""
