"""Running scenarios, collecting results and writing the report."""
