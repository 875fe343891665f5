"""The servers that the clients under test talk to."""
