"""Tests of the console in Chromium, which ``make browser`` runs."""
