"""Observations of a project: a fingerprint of what pages show, and when that will change by itself.

A watcher compares the fingerprints of two observations. It observes the project again after each
write, and when the next operation changes or the next background event is due.
"""

from typing import Final

import msgspec

from neonctl_local.clock import Instant
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import NEVER, DueEvent, Project
from neonctl_local.storage.transactions import Transaction

_NEXT_EVENT: Final = "WHERE project_id = ? ORDER BY at, id LIMIT 1"

# The counts change with every step of an operation, because operations never go back.
_UNSETTLED: Final = """
SELECT count(*), total(:now < starts_at), total(retry_at IS NOT NULL AND :now >= ends_at),
    total(:now >= retry_at), min(CASE
        WHEN :now < starts_at THEN starts_at
        WHEN retry_at IS NOT NULL AND :now < ends_at THEN ends_at
        WHEN :now < retry_at THEN retry_at
        ELSE settles_at
    END)
FROM operations INDEXED BY operations_unsettled WHERE project_id = :project AND settles_at > :now
"""
_NEWEST: Final = "SELECT max(position) FROM operations WHERE project_id = :project"
_BRANCHES: Final = """
SELECT group_concat(concat, char(10)) FROM (SELECT
    id || ' ' || name || ' ' || coalesce(parent_id, '') || ' ' || is_default || protected || ' ' ||
    state_before || ' ' || state || ' ' || (state_at > :now) || ' ' || coalesce(logical_size, '') ||
    ' ' || coalesce(expires_at, '') || ' ' || updated_at AS concat
FROM branches WHERE project_id = :project AND deleted_at IS NULL)
"""
_ENDPOINTS: Final = """
SELECT group_concat(concat, char(10)) FROM (SELECT
    id || ' ' || branch_id || ' ' || coalesce(name, '') || ' ' || type || ' ' || disabled || ' ' ||
    state_before || ' ' || state || ' ' || (state_at > :now) || ' ' ||
    autoscaling_limit_min_cu || ' ' || autoscaling_limit_max_cu || ' ' ||
    suspend_timeout_seconds || ' ' || updated_at AS concat
FROM endpoints WHERE project_id = :project AND deleted_at IS NULL)
"""


class Observation(msgspec.Struct, frozen=True):
    """A project at one point in time.

    - ``fingerprint``: a hash of the content, which changes when the content does.
    - ``changes_at``: the next time at which the project changes without a request, or None.
    - ``is_due``: True if background work must run now.
    """

    fingerprint: int
    changes_at: Instant | None = None
    is_due: bool = False


def observe(tx: Transaction, project_id: str) -> Observation:
    """Return an observation of a project.

    It does not read roles and databases, because they change only together with an operation.
    """
    project = tx.first(Project, "WHERE id = ?", project_id)
    if project is None:
        return Observation(0)
    names: dict[str, SqlValue] = {"project": project_id, "now": tx.now}
    *counts, next_step = tx.values(_UNSETTLED, names)
    shown = msgspec.structs.replace(project, detach_at=None)
    content = [tx.values(sql, names) for sql in (_NEWEST, _BRANCHES, _ENDPOINTS)]
    steps = [next_step] if isinstance(next_step, int) and next_step < NEVER else []
    event = None
    if project.deleted_at is None:
        event = tx.first(DueEvent, _NEXT_EVENT, project_id)
    if event is not None:
        steps.append(event.at)
    return Observation(
        fingerprint=hash((msgspec.structs.astuple(shown), *counts, *content)),
        changes_at=min(steps, default=None),
        is_due=event is not None and event.at <= tx.now,
    )
