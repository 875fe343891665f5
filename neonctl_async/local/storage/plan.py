"""The plan of an operation: the moments and the outcome that are decided when it is created."""

import msgspec

from neonctl_async.local.clock import Instant

FINISHED = "finished"


NOT_STARTED = "not started: the operation before it did not finish"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """When an operation changes, and into what. ``settles_at`` is when its status is final."""

    created_at: Instant
    starts_at: Instant
    ends_at: Instant
    settles_at: Instant
    outcome: str
    retry_at: Instant | None = None
    error: str | None = None

    @property
    def succeeds(self) -> bool:
        """Whether it ends well."""
        return self.outcome == FINISHED

    @property
    def runs(self) -> bool:
        """Whether it starts at all, as what follows a failure does not."""
        return self.error != NOT_STARTED
