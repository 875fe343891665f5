"""A test suite with a database per test, which the benchmarks run in separate processes.

Each provider is a pytest plugin with the fixture ``database_uri``.
"""
