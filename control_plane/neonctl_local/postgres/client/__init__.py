"""The client's side of Postgres sessions, for programs that want values as text."""
