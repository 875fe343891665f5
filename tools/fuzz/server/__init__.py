"""Fuzzing of the HTTP side of the local control plane: headers, bodies, encodings and paths."""
