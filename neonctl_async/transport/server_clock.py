"""The time of day on the server, from the header ``Date`` of its responses. Pure: no I/O."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

TOLERANCE = timedelta(seconds=2)
"""Difference of the clocks up to which the local clock is used: ``Date`` has whole seconds."""


class ServerClock:
    """The clock of the server. ``now`` is a time on the loop's clock, which is never set back."""

    def __init__(self) -> None:
        self._header = ""
        self._received_at = 0.0
        self._parsed: tuple[str, datetime | None] = ("", None)

    def note(self, date: str | None, now: float) -> None:
        """Record the header ``Date`` of a response that arrives now."""
        if date:
            self._header = date
            self._received_at = now

    def utc_now(self, now: float, local: datetime) -> datetime:
        """Return the time of day on the server. ``local`` is the local time of day.

        This is the local time if the clocks agree, or if no response had a valid ``Date``.
        """
        if self._parsed[0] != self._header:
            self._parsed = (self._header, http_date(self._header))
        date = self._parsed[1]
        if date is None:
            return local
        try:
            server = date + timedelta(seconds=now - self._received_at)
        except OverflowError:  # a date at the end of the year 9999
            return date
        return local if abs(server - local) <= TOLERANCE else server


def http_date(value: str) -> datetime | None:
    """Return the date in an HTTP header, None if it is invalid."""
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
