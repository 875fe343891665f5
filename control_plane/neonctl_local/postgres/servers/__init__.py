"""Server processes: their lifecycle, locks, and the guardian."""
