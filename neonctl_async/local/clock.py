"""Time as the control plane keeps it: whole microseconds since 1970, in UTC."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

Instant = int
"""A moment, in microseconds since 1970-01-01T00:00:00Z."""

Clock = Callable[[], datetime]
"""Tells the time: an aware ``datetime`` at each call."""

SECOND: Final = 1_000_000
"""A second, in microseconds."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start

    def __call__(self) -> datetime:
        """The time it shows."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move ``seconds`` forward. Clocks do not go back."""
        if seconds < 0:
            raise ValueError("a clock only moves forward")
        self._now += timedelta(seconds=seconds)


def instant(moment: datetime) -> Instant:
    """An aware ``datetime`` as an instant, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def span(seconds: float) -> int:
    """A duration in seconds as microseconds."""
    return round(seconds * SECOND)


def in_seconds(at: Instant) -> str:
    """An instant as the API shows it: ISO 8601, UTC, whole seconds as in every recorded answer."""
    return (_EPOCH + timedelta(seconds=at // SECOND)).isoformat()[: -len("+00:00")] + "Z"


def in_seconds_or_none(at: Instant | None) -> str | None:
    """The same of an instant that may not be set."""
    return None if at is None else in_seconds(at)


def exactly(at: Instant) -> str:
    """An instant with its fraction, trailing zeros dropped: the form of cursors (section 2.4)."""
    fraction = f".{at % SECOND:06}".rstrip("0")
    return in_seconds(at)[:-1] + (fraction if fraction != "." else "") + "Z"


def parse(text: str) -> Instant:
    """The instant that a timestamp names. Raises ``ValueError`` where it names none."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC")
    return instant(moment)
