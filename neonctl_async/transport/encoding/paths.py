"""Ids and object keys as segments of a path. Pure: no I/O."""

import re
from typing import Any, Final
from urllib.parse import quote

from neonctl_async._internal import shorten
from neonctl_async.transport.encoding.texts import check_length, check_utf8
from neonctl_async.transport.hints import wrong_id

MAX_ID_CHARACTERS: Final = 256
"""The length of the longest id. The longest ids and names of Neon have 63 characters."""
MAX_KEY_CHARACTERS: Final = 1024
"""The length of the longest object key."""
KEYS: Final = frozenset({"object_key"})
"""The parameters that may contain ``/``. Neon requires it percent-encoded, as ``%2F``."""

_SEPARATOR: Final = re.compile(r"[/\\]")


def path_segment(name: str, value: str | int) -> str:
    """Return an id or an object key as one percent-encoded segment of a path.

    Raises ValueError or TypeError, with the name of the parameter, for an id that is empty, is too
    long, or would change the path.
    """
    if are_plain((value,)):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, str | int):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(wrong_id(name, value))
    text = str(value)
    if name in KEYS:
        return _key_segment(name, text)
    if text in {"", ".", ".."} or "/" in text:
        raise ValueError(
            f"{name} is {shorten(text)}: expected an id that is not empty, '.' or '..' and has no "
            "'/', which would change the path"
        )
    return quote(check_utf8(name, check_length(name, text, MAX_ID_CHARACTERS)), safe="")


def are_plain(ids: tuple[Any, ...]) -> bool:
    """Return whether all ids are strings that need no encoding and no further check."""
    try:
        text = "".join(ids)
    except TypeError:
        return False
    is_plain = text.isascii() and text.replace("-", "").isalnum()
    return is_plain and "" not in ids and len(text) <= MAX_ID_CHARACTERS


def _key_segment(name: str, key: str) -> str:
    # A proxy may decode %2F and then resolve '..', so that another object or even another kind of
    # object would be read or deleted.
    if not key or {".", ".."} & set(_SEPARATOR.split(key)):
        raise ValueError(
            f"{name} is {shorten(key)}: expected a key that is not empty and has no part '.' or "
            "'..' between slashes, which would change the path"
        )
    return quote(check_utf8(name, check_length(name, key, MAX_KEY_CHARACTERS)), safe="")
