"""Loads under the rate limits, which run on a fake clock beside an oracle."""
