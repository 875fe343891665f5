"""Values in error messages, shortened."""

import reprlib
from typing import Final

MAX_CHARACTERS: Final = 100
"""The length of the longest shown value."""

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxlong = _repr.maxother = MAX_CHARACTERS


def shorten(value: object) -> str:
    """Return the repr of a value. The middle of a long value is replaced by ``...``."""
    return _repr.repr(value)
