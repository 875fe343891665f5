"""A test suite that uses SQLAlchemy, before and after its move to a database for each test."""
