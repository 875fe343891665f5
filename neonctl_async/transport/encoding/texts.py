"""Checks of the texts in a URL. Pure: no I/O."""

from neonctl_async._internal import shorten


def check_length(name: str, text: str, maximum: int) -> str:
    """Return ``text``. Raises ValueError if it is longer than ``maximum`` characters."""
    if len(text) > maximum:
        raise ValueError(
            f"{name} is {shorten(text)}, with {len(text)} characters: expected at most {maximum}"
        )
    return text


def check_utf8(name: str, text: str) -> str:
    """Return ``text``. Raises ValueError if it has characters that UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is {shorten(text)}: it cannot be written as UTF-8") from None
    return text
