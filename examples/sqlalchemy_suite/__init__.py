"""A test suite of SQLAlchemy, before and after its move to a database for each test."""
