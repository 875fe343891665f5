"""The plan of an operation: its times and its outcome, decided when it is created.

The end of an operation with real work is not known before the work is done. Until then the end is
:data:`NEVER`, or later.
"""

from typing import Final

import msgspec

from neonctl_local.clock import SECOND, Instant

NEVER: Final[Instant] = 200_000_000_000 * SECOND
"""A time after every other time, in the year 8307. A duration added to it fits into SQLite."""

FINISHED = "finished"
NOT_STARTED = "not started: the operation before it did not finish"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The times at which an operation changes, and its outcome.

    ``settles_at`` is the time at which it reaches its terminal status.
    """

    created_at: Instant
    starts_at: Instant
    ends_at: Instant
    settles_at: Instant
    outcome: str
    retry_at: Instant | None = None
    error: str | None = None

    @property
    def succeeds(self) -> bool:
        """True if the operation finishes successfully."""
        return self.outcome == FINISHED

    @property
    def runs(self) -> bool:
        """True if the operation starts. Operations after a failed one do not."""
        return self.error != NOT_STARTED

    @property
    def is_open(self) -> bool:
        """True if the end of the operation is not known yet."""
        return self.settles_at >= NEVER
