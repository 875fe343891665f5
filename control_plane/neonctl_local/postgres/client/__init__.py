"""The client's side of Postgres sessions, for callers that need values as text."""
