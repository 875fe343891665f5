"""Reads numbers and times that were typed into forms."""

import re
from collections.abc import Mapping
from typing import Final

from neonctl_local.console.visits import Visit
from neonctl_local.errors import invalid

_MOST_DIGITS: Final = 18
_LOCAL_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?")


def typed_or(visit: Visit, defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of the posted form, or ``defaults`` if no form was posted."""
    if not visit.form:
        return dict(defaults)
    return {name: visit.typed(name) for name in defaults}


def moment(text: str) -> str | None:
    """Return a time in the format that requests use, or None if the field is empty.

    Browsers send times without an offset. The labels of the fields say that times are in UTC.
    """
    text = text.strip()
    found = _LOCAL_TIME.fullmatch(text)
    if found is None:
        return text or None
    day, minute, second = found.groups()
    return f"{day}T{minute}{second or ':00'}Z"


def number(label: str, text: str, example: str) -> float | None:
    """Return the typed number, or None for an empty field. Raise 400 for other text."""
    text = text.strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value - value != 0:  # NaN and infinity
        raise invalid(f"{label} is {text!r}: type a number such as {example}")
    return value


def whole_number(label: str, text: str, example: str) -> int | None:
    """Return the typed whole number, or None for an empty field. Raise 400 for other text."""
    value = number(label, text, example)
    if value is None:
        return None
    if value != int(value):
        raise invalid(f"{label} is {text.strip()!r}: type a whole number such as {example}")
    return int(value)


def natural_number(text: str) -> int | None:
    """Return a string of digits as a number, or None for any other string.

    Return None for more than 18 digits too, because SQLite cannot store the number.
    """
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else None


def drop_empty(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a request that have a value."""
    return {name: value for name, value in fields.items() if value not in {None, ""}}
