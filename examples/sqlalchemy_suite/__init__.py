"""A test suite that uses SQLAlchemy, before and after its move to one database per test."""
