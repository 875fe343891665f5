"""Fault campaigns: thousands of faults between clients and a local control plane."""
