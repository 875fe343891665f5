"""Checks that the project's English is plain: words, docstring openings, sentence length."""
