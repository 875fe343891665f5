"""The policy that selects the branches to delete. Pure: no I/O, time passed in."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from operator import attrgetter
from typing import NamedTuple

import msgspec

from neonctl_async._internal import shorten
from neonctl_async.models.branches import Branch
from neonctl_async.models.endpoints import Endpoint, EndpointState


class Judgement(NamedTuple):
    """The result of comparing a branch with a policy."""

    is_selected: bool
    """True if the branch meets all criteria."""
    is_related: bool
    """True if the branch meets all name criteria, and at least one criterion."""
    reason: str = ""
    """The criteria that the branch does not meet."""


class Activity(NamedTuple):
    """The last use of a branch, with a description."""

    at: datetime
    what: str
    is_now: bool = False


class PrunePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The criteria for the branches to delete. A branch must meet all criteria that are not None.

    Raises ValueError if there is no criterion, and for an empty string or a duration that is not
    above 0.
    """

    name_prefix: str | None = None
    pattern: str | None = None
    names: Collection[str] | None = None
    older_than: timedelta | None = None
    idle_for: timedelta | None = None

    def __post_init__(self) -> None:
        if all(getattr(self, name) is None for name in self.__struct_fields__):
            raise ValueError(
                "prune has no criterion, so it would delete every branch: set at least one of "
                f"{', '.join(self.__struct_fields__)}"
            )
        for name in ("name_prefix", "pattern"):
            _check_text(name, getattr(self, name))
        for name in ("older_than", "idle_for"):
            _check_duration(name, getattr(self, name))
        if self.names is not None:
            msgspec.structs.force_setattr(self, "names", _set_of(self.names))

    def judge(self, branch: Branch, computes: Sequence[Endpoint], now: datetime) -> Judgement:
        """Compare a branch with the policy. ``computes`` are the computes of the branch."""
        if reason := self._wrong_name(branch):
            return Judgement(is_selected=False, is_related=False, reason=reason)
        limits = [
            (limit, activity)
            for limit, activity in (
                (self.older_than, Activity(branch.created_at, "it was created")),
                (self.idle_for, last_activity(branch, computes, now)),
            )
            if limit is not None
        ]
        unmet = [
            _recent(activity, limit, now)
            for limit, activity in limits
            if activity.is_now or now - activity.at <= limit
        ]
        return Judgement(
            is_selected=not unmet,
            is_related=self._selects_names or len(unmet) < len(limits),
            reason=", and ".join(unmet),
        )

    @property
    def _selects_names(self) -> bool:
        return not (self.name_prefix is None and self.pattern is None and self.names is None)

    def _wrong_name(self, branch: Branch) -> str | None:
        name = branch.name
        if self.name_prefix is not None and not name.startswith(self.name_prefix):
            return f"its name does not start with {shorten(self.name_prefix)}"
        if self.pattern is not None and not fnmatchcase(name, self.pattern):
            return f"its name does not match {shorten(self.pattern)}"
        if self.names is not None and not {branch.name, branch.id}.intersection(self.names):
            return "its name is not one of the given names"
        return None


def last_activity(branch: Branch, computes: Sequence[Endpoint], now: datetime) -> Activity:
    """Return the last use of a branch.

    It is the latest of these times: the branch was created, changed or reset, or one of its
    computes was active. A branch with a running compute is in use now.
    """
    found = [
        Activity(branch.created_at, "it was created"),
        Activity(branch.updated_at, "it was changed"),
    ]
    if branch.last_reset_at is not None:
        found.append(Activity(branch.last_reset_at, "it was reset"))
    for compute in computes:
        if compute.current_state != EndpointState.IDLE or compute.pending_state is not None:
            return Activity(now, "a compute is running", is_now=True)
        # Not started_at, if possible: Neon starts idle computes to check that they are available.
        at = compute.last_active or compute.started_at
        if at is not None:
            found.append(Activity(at, "a compute was active"))
    return max(found, key=attrgetter("at"))


def _recent(activity: Activity, limit: timedelta, now: datetime) -> str:
    if activity.is_now:
        return activity.what
    ago = duration_text(max(now - activity.at, timedelta(0)))
    return f"{activity.what} {ago} ago, less than {duration_text(limit)}"


_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def duration_text(duration: timedelta) -> str:
    """Format a duration in one unit, such as ``7 days`` or ``36 hours``, rounded down."""
    seconds = int(duration.total_seconds())
    unit, length = next(
        (unit, length)
        for unit, length in _UNITS
        if length == 1 or seconds >= 3 * length or (seconds and seconds % length == 0)
    )
    count = seconds // length
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _check_text(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise TypeError(f"{name} is {shorten(value)}: expected a str")
    if not value:
        raise ValueError(f"{name} is empty, so it would match every branch: set a text")


def _check_duration(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, timedelta):
        raise TypeError(f"{name} is {shorten(value)}: expected a timedelta")
    if value <= timedelta(0):
        raise ValueError(f"{name} is {value}: expected a duration of more than 0")


def _set_of(names: Collection[str]) -> frozenset[str]:
    """Return the names. Raise TypeError for a string: each character would be taken as a name."""
    if isinstance(names, str | bytes) or not isinstance(names, Collection):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(f"names is {shorten(names)}: expected a list of names")
    for name in names:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            raise TypeError(f"names contains {shorten(name)}: expected a str")
    return frozenset(names)
