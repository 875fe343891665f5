"""Access to the console: sessions, sign-in, posted forms, and the headers of responses."""
