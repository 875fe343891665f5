"""The pytest plugin of neonctl-async.

A package of its own, for what pytest imports at every start must not import an HTTP client: that
is left to the fixtures, and done once one of them is used.
"""
