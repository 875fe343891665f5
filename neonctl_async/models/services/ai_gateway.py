"""The AI gateway of a branch."""
