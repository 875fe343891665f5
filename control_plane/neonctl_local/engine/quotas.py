"""The quotas of a project: how long its computes may run in a month."""

from typing import Final

import msgspec

from neonctl_local.engine import computes, usage
from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.timeframes import Span, month_of
from neonctl_local.errors import precondition_failed
from neonctl_local.storage.tables import Project
from neonctl_local.storage.transactions import Transaction

EXCEEDED: Final = (
    "Your account or project has exceeded the compute time quota. "
    "Upgrade your plan to increase limits."
)
"""Neon's error message."""


class _Quota(msgspec.Struct, frozen=True):
    """The limits in seconds. 0 means no limit."""

    active_time_seconds: int = 0
    compute_time_seconds: int = 0


class _Settings(msgspec.Struct, frozen=True):
    quota: _Quota = _Quota()


def check(tx: Transaction, project: Project) -> None:
    """Raise 412 if the computes of a project must not start, because it exceeds a quota."""
    if is_exceeded(tx, project):
        raise precondition_failed(EXCEEDED)


def is_exceeded(tx: Transaction, project: Project) -> bool:
    """Return whether the computes of a project have used up a quota of this month."""
    quota = msgspec.json.decode(project.settings, type=_Settings).quota
    if not (quota.active_time_seconds or quota.compute_time_seconds):
        return False
    period = Span(month_of(tx.now).start, tx.now)
    branches = usage.of_project(tx, project.id, period.start)
    used = (
        (quota.active_time_seconds, sum(each.active_seconds(period) for each in branches)),
        (quota.compute_time_seconds, sum(each.compute_unit_seconds(period) for each in branches)),
    )
    return any(limit and seconds >= limit for limit, seconds in used)


def is_due(tx: Transaction, project: Project) -> bool:
    """Return whether :func:`suspend_exceeding` would suspend a compute."""
    return is_exceeded(tx, project) and bool(computes.list_running(tx, project.id))


def suspend_exceeding(tx: Transaction, project: Project) -> None:
    """Suspend the computes of a project that exceeds a quota."""
    if is_exceeded(tx, project):
        for endpoint in computes.list_running(tx, project.id):
            computes.suspend(tx, endpoint, OperationChain(tx, project.id))
