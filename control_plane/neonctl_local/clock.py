"""Time in the local control plane: whole microseconds since 1970, in UTC."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

Instant = int
"""A moment, in microseconds since 1970-01-01T00:00:00Z."""

Clock = Callable[[], datetime]
"""A function that returns the time as an aware ``datetime``."""

SECOND: Final = 1_000_000
"""A second, in microseconds."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The start of the year 1970 in UTC, which is the instant 0."""

_MICROSECOND: Final = timedelta(microseconds=1)


def utc_now() -> datetime:
    """Return the time of the wall clock."""
    return datetime.now(UTC)


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start

    def __call__(self) -> datetime:
        """Return the time of this clock."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward. Raise ValueError if ``seconds`` is negative."""
        if seconds < 0:
            raise ValueError(f"seconds is {seconds}: a clock only moves forward")
        self._now += timedelta(seconds=seconds)


def instant(moment: datetime) -> Instant:
    """Convert an aware ``datetime`` to an instant, without rounding."""
    return (moment - EPOCH) // _MICROSECOND


def span(seconds: float) -> int:
    """Convert a duration from seconds to microseconds."""
    return round(seconds * SECOND)


@lru_cache(1 << 14)  # lists format the times of many rows, and many of the times are equal
def _whole_seconds(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).isoformat()[: -len("+00:00")] + "Z"


def in_seconds(at: Instant) -> str:
    """Format an instant as the API does: ISO 8601, UTC, whole seconds."""
    return _whole_seconds(at // SECOND)


def in_seconds_or_none(at: Instant | None) -> str | None:
    """Format an instant as :func:`in_seconds` does, or return None for None."""
    return None if at is None else in_seconds(at)


def exactly(at: Instant) -> str:
    """Format an instant with its fraction of a second, for cursors.

    The fraction always has six digits, even if it is 0, because some clients parse only this form.
    """
    return f"{in_seconds(at)[:-1]}.{at % SECOND:06}Z"


def parse(text: str) -> Instant:
    """Parse a timestamp.

    Raise ValueError if it is malformed, has no offset from UTC, or is out of range in UTC.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC")
    try:
        return instant(moment.astimezone(UTC))
    except OverflowError:
        raise ValueError(f"{text!r} is out of range") from None
