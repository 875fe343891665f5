"""The timeframes of consumption: hours, days and months in UTC."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from neonctl_local.clock import SECOND, Instant, in_seconds, instant
from neonctl_local.errors import ApiError

FIRST: Final = instant(datetime(2024, 3, 1, tzinfo=UTC))
"""The start of the consumption history."""

_KEPT: Final = {
    "hourly": (timedelta(hours=168), "168 hours"),
    "daily": (timedelta(days=60), "60 days"),
    "monthly": (timedelta(days=366), "year"),
}
GRANULARITIES: Final = tuple(_KEPT)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Span(NamedTuple):
    """The time from ``start`` to ``end``."""

    start: Instant
    end: Instant

    def overlap(self, other: "Span") -> int:
        """Return the time that two spans share, in microseconds."""
        return max(0, min(self.end, other.end) - max(self.start, other.start))


def split(granularity: str, since: Instant, until: Instant, now: Instant) -> list[Span]:
    """Return the timeframes between two times, which are rounded to whole timeframes.

    Raise 406 if the end is before the start, or if the start is too long ago for the granularity.
    """
    kept, text = _KEPT[granularity]
    oldest = max(FIRST, instant(_floor(_moment(now) - kept, granularity)))
    start = _floor(_moment(since), granularity)
    if instant(start) < oldest:
        raise ApiError(
            406,
            f"from is {in_seconds(since)}: {granularity} consumption is kept for the last {text}, "
            f"from {in_seconds(oldest)} on; use a later time or another granularity",
        )
    if until < since:
        raise ApiError(406, f"to is {in_seconds(until)}: it must not be before from")
    frames: list[Span] = []
    while instant(start) < min(until, now):
        end = _next(start, granularity)
        frames.append(Span(instant(start), instant(end)))
        start = end
    return frames


def month_of(at: Instant) -> Span:
    """Return the calendar month that contains a time."""
    start = _floor(_moment(at), "monthly")
    return Span(instant(start), instant(_next(start, "monthly")))


def _moment(at: Instant) -> datetime:
    return _EPOCH + timedelta(seconds=at // SECOND)


def _floor(moment: datetime, granularity: str) -> datetime:
    hour = moment.replace(minute=0, second=0, microsecond=0)
    if granularity == "hourly":
        return hour
    day = hour.replace(hour=0)
    return day if granularity == "daily" else day.replace(day=1)


def _next(start: datetime, granularity: str) -> datetime:
    if granularity == "hourly":
        return start + timedelta(hours=1)
    if granularity == "daily":
        return start + timedelta(days=1)
    return (start + timedelta(days=31)).replace(day=1)
