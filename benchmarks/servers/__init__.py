"""The servers that the clients send requests to."""
