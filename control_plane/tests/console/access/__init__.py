"""Tests of sessions, sign-in, forms and headers."""
