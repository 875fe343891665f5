"""Server processes: their life, locks, and the guardian."""
