"""Tests of the history of clusters."""
