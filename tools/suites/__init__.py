"""Tests of others through the proxy of the local control plane."""
