"""Tests of the pages of API keys and people."""
