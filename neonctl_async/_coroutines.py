"""Coroutine functions that callers pass where plain functions are expected."""

import inspect


def is_coroutine_function(function: object) -> bool:
    """Return whether a call of ``function`` returns a coroutine, which nobody would await."""
    return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))
