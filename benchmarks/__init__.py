"""Benchmarks of neonctl-async and other clients: ``python -m benchmarks``."""
