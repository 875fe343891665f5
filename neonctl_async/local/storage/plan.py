"""The plan of an operation: its times and its outcome, decided when it is created."""

import msgspec

from neonctl_async.local.clock import Instant

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
