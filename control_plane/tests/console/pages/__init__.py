"""Tests of the console without a browser."""
