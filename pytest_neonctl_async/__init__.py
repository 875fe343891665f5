"""The pytest plugin of neonctl-async.

It is a separate package, because pytest imports it at every start. Only its fixtures import
``neonctl_async`` and, with it, an HTTP client.
"""
