"""What a control plane is told at start: durations, periods, locking, limits."""

import math
from typing import Final, Literal

import msgspec

ACTIONS: Final = frozenset(
    {
        "apply_config",
        "apply_storage_config",
        "check_availability",
        "create_branch",
        "create_timeline",
        "delete_tenant",
        "delete_timeline",
        "start_compute",
        "suspend_compute",
        "tenant_attach",
        "tenant_detach",
        "tenant_reattach",
        "timeline_archive",
        "timeline_unarchive",
    }
)
"""What the control plane does (section 2.3, and deleting a branch)."""


def check_action(action: str) -> None:
    """Raise ValueError for what no operation of the control plane is called."""
    if action not in ACTIONS:
        known = ", ".join(sorted(ACTIONS))
        raise ValueError(f"there is no action {action!r}: it is one of {known}")


Lock = Literal["none", "branch", "project"]
"""What running operations lock: nothing, their branch, or their whole project (423)."""


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    """How long operations take, in seconds.

    ``by_action`` names what differs from ``default``. ``scheduling`` is the share of its duration
    that the first operation of a request waits before it runs: none by default, for the first
    operation of the recorded answer is already running (section 4.5).
    """

    default: float = 1.0
    by_action: dict[str, float] = {}
    scheduling: float = 0.0

    def __post_init__(self) -> None:
        seconds = (self.default, *self.by_action.values())
        if not all(math.isfinite(duration) and duration >= 0 for duration in seconds):
            raise ValueError("a duration is a finite number of seconds, and not negative")
        if not 0 <= self.scheduling <= 1:
            raise ValueError("scheduling is a share, between 0 and 1")
        for action in self.by_action:
            check_action(action)

    def of(self, action: str) -> float:
        """The duration of an action, in seconds."""
        return self.by_action.get(action, self.default)


class BackgroundIntervals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the control plane acts by itself (section 2.3), in seconds; ``None`` is never.

    ``suspend_after``: idle time of a compute whose own ``suspend_timeout_seconds`` is 0.
    ``check_availability_every``: between two checks of a branch that has a compute.
    ``detach_after``: time without a request after which a project is detached from storage.
    ``archive_after_age`` and ``archive_after_idle``: a branch is archived once it is that old and
    has been idle for so long.
    """

    suspend_after: float | None = 300.0
    check_availability_every: float | None = 4 * 3600.0
    detach_after: float | None = 7 * 86400.0
    archive_after_age: float | None = 14 * 86400.0
    archive_after_idle: float = 86400.0

    def __post_init__(self) -> None:
        every = self.check_availability_every
        if every is not None and every < 0.001:
            raise ValueError("check_availability_every is at least 0.001, or None")
        others = (self.suspend_after, self.detach_after, self.archive_after_age)
        if min(self.archive_after_idle, *(period or 0 for period in others)) < 0:
            raise ValueError("a period is not negative")


class RateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Requests allowed within any 60 seconds, or any one second, of a sliding window.

    ``retry_after`` is the form of the header of a 429: seconds, an HTTP date, or no header.
    """

    account_per_minute: int = 700
    route_per_second: int = 40
    organization_keys_per_second: int = 10
    retry_after: Literal["seconds", "date", "none"] = "seconds"

    def __post_init__(self) -> None:
        limits = (
            self.account_per_minute,
            self.route_per_second,
            self.organization_keys_per_second,
        )
        if min(limits) < 1:
            raise ValueError("a rate limit allows at least 1 request")


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that the domain reads."""

    durations: Durations = Durations()
    intervals: BackgroundIntervals = BackgroundIntervals()
    lock: Lock = "none"
