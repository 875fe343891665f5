"""Fuzzing of the wire format and the models."""
