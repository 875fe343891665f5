"""The proxy of a local control plane: one TCP listener for the databases of all computes."""
