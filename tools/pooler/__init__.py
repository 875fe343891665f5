"""Sends any messages to the pooler, and compares its well-behaved clients with direct ones."""
