"""Durations, sizes, times and errors, as pages show them."""

import re
from typing import Final

from neonctl_local.clock import Instant, in_seconds, parse

_WORDS: Final = {
    "expires_at": "expiry",
    "parent_timestamp": "point in time",
    "source_timestamp": "point in time",
    "parent_lsn": "LSN",
    "source_lsn": "LSN",
    "autoscaling_limit_min_cu": "minimum size",
    "autoscaling_limit_max_cu": "maximum size",
    "suspend_timeout_seconds": "suspend timeout",
    "preserve_under_name": "name of the previous state",
}
"""What the forms call the fields of the API."""
_PREFIX: Final = re.compile(r"invalid request: (?:decode application/json: invalid: )?")
_QUOTED_OR_FIELD: Final = re.compile(
    r"""'[^']*'|"[^"]*"|"""
    rf"(\b(?:an?|the) )?\b(?:branch\.|endpoint\.)?({'|'.join(_WORDS)})\b"
)
"""A quoted name, which stays unchanged, or the name of a field with its article."""
_TO_NULL: Final = re.compile(r"set the expiry of branch '[^']*' to null first")
_UNITS: Final = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def duration(milliseconds: int) -> str:
    """Return a duration: ``350 ms``, ``1.2 s``, ``2 min 5 s``, ``1 h 10 min``."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def size(count: int) -> str:
    """Return a size: ``512 bytes``, ``30.5 MB``, in units of 1,024."""
    if count < 1024:
        return f"{count} bytes"
    value = float(count)
    for unit in ("kB", "MB", "GB"):
        value /= 1024
        if round(value, 1) < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TB"


def period(seconds: int) -> str:
    """Return a length of time in its largest whole unit: ``7 days``, ``90 minutes``, ``none``."""
    if seconds == 0:
        return "none"
    unit, length = next((unit, length) for unit, length in _UNITS if seconds % length == 0)
    return _counted(seconds // length, unit)


def moment(time: str | Instant) -> str:
    """Return a time in UTC, from an API timestamp or an instant: ``2026-11-23T01:02:03Z``."""
    return in_seconds(parse(time) if isinstance(time, str) else time)


def explained(message: str) -> str:
    """Return an API error message in the words of the console's forms."""

    def in_words(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[0]
        return (found[1] or ("the " if found.start() else "")) + _WORDS[found[2]]

    text = _QUOTED_OR_FIELD.sub(in_words, _PREFIX.sub("", message))
    return _TO_NULL.sub("remove its expiry first", text)


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}"
