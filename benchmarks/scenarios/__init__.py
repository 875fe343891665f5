"""The scenarios: each module measures one thing and returns its rows."""
