"""Durations, sizes and ages, as pages show them."""

from datetime import datetime
from typing import Final

from neonctl_async.local.clock import Instant, in_seconds, parse

_AGES: Final = (("day", 86_400), ("hour", 3600), ("minute", 60))


def duration(milliseconds: int) -> str:
    """Return a duration: ``350 ms``, ``1.2 s``, ``2 min 5 s``, ``1 h 10 min``."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
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
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TB"


def period(seconds: int) -> str:
    """Return a length of time in its largest whole unit: ``7 days``, ``90 minutes``, ``none``."""
    if seconds == 0:
        return "none"
    units = (*_AGES, ("second", 1))
    unit, length = next((unit, length) for unit, length in units if seconds % length == 0)
    return _counted(seconds // length, unit)


def age(then: str, now: str) -> str:
    """Return how long ago a timestamp is: ``3 minutes ago``, ``just now``."""
    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(then)).total_seconds()
    for unit, length in _AGES:
        if seconds >= length:
            return f"{_counted(int(seconds // length), unit)} ago"
    return "just now"


def moment(time: str | Instant) -> str:
    """Return a time in UTC, from a timestamp of the API or an instant: ``2026-11-23T01:02:03Z``."""
    return in_seconds(parse(time) if isinstance(time, str) else time)


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}"
