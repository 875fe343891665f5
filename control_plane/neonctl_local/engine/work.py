"""The work of operations on real databases, and the order in which the work may start.

A cluster is the data directory of one branch or snapshot, with its Postgres server. The id of a
cluster is the id of the branch or snapshot. Work is stored with its operation, and is repeated if
the process was killed before the operation finished. So all work must be idempotent.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from neonctl_local.clock import Instant
from neonctl_local.storage.tables import NEVER, Operation
from neonctl_local.storage.transactions import Transaction


class WorkBase(msgspec.Struct, frozen=True, tag=True):
    """The work of one operation."""


class CreateCluster(WorkBase, frozen=True):
    """Create the cluster of a branch, for a major version of Postgres.

    The cluster is a copy of the cluster ``template``, if that is set. With ``takes_template``, it
    is that cluster itself.
    """

    branch_id: str
    pg_version: int
    template: str | None = None
    takes_template: bool = False


class CopyCluster(WorkBase, frozen=True):
    """Copy the cluster ``source`` to a new cluster ``target``.

    ``at`` or ``lsn`` is the requested point in time. If both are None, the current content is
    copied. With ``schema_only``, the copy has no rows.
    """

    target: str
    source: str
    at: Instant | None = None
    lsn: str | None = None
    schema_only: bool = False


class ReplaceCluster(WorkBase, frozen=True):
    """Replace the cluster of a branch with a copy of the cluster ``source``.

    When the copy is complete, the old cluster is renamed to ``preserved_id``, or deleted if that is
    None. ``source`` may be the branch itself. If the copy fails, the old cluster must keep its id.
    ``at`` and ``lsn`` are as in :class:`CopyCluster`.
    """

    branch_id: str
    source: str
    at: Instant | None = None
    lsn: str | None = None
    preserved_id: str | None = None


class StartCompute(WorkBase, frozen=True):
    """Start the server of a branch for a compute, unless it is already running for another one."""

    branch_id: str
    endpoint_id: str


class SuspendCompute(WorkBase, frozen=True):
    """Close the connections of a compute. Stop the server, unless another compute uses it."""

    branch_id: str
    endpoint_id: str


class ConfigureBranch(WorkBase, frozen=True):
    """Apply the roles, databases and settings of a branch, if its server is running."""

    branch_id: str


class StopClusters(WorkBase, frozen=True):
    """Stop the servers of clusters, and keep their data."""

    ids: list[str]


class DeleteClusters(WorkBase, frozen=True):
    """Stop the servers of clusters, and delete their data."""

    ids: list[str]


Work = (
    CreateCluster
    | CopyCluster
    | ReplaceCluster
    | StartCompute
    | SuspendCompute
    | ConfigureBranch
    | StopClusters
    | DeleteClusters
)
"""The work of one operation, stored as JSON."""


MAKING: Final = (CreateCluster, CopyCluster, ReplaceCluster)
"""The kinds of work that create the clusters they change."""


class Touched(NamedTuple):
    """The ids of the clusters that work changes (``exclusive``) or only reads (``shared``)."""

    exclusive: set[str]
    shared: set[str]

    def conflicts(self, other: "Touched") -> bool:
        """Return whether two pieces of work cannot run at the same time."""
        return not (
            self.exclusive.isdisjoint(other.exclusive | other.shared)
            and self.shared.isdisjoint(other.exclusive)
        )


def touches(work: Work) -> Touched:
    """Return the clusters that the work changes or reads."""
    match work:
        case CreateCluster(branch_id=branch_id, template=template):
            return _touched({branch_id}, template)
        case CopyCluster(target=target, source=source):
            return _touched({target}, source)
        case ReplaceCluster(branch_id=branch_id, source=source, preserved_id=preserved_id):
            return _touched({branch_id, preserved_id or branch_id}, source)
        case StopClusters(ids=ids) | DeleteClusters(ids=ids):
            return _touched(set(ids))
        case StartCompute() | SuspendCompute() | ConfigureBranch():
            return _touched({work.branch_id})


def _touched(exclusive: set[str], source: str | None = None) -> Touched:
    return Touched(exclusive, {source} - exclusive if source else set())


def encode(work: Work) -> str:
    """Return the work as the JSON text that the table stores."""
    return msgspec.json.encode(work).decode()


def of(operation: Operation) -> Work:
    """Return the work of an operation. Raise ValueError if there is none."""
    if operation.work is None:
        raise ValueError(f"operation {operation.id!r} has no work")
    work: Work = msgspec.json.decode(operation.work, type=Work)
    return work


def startable(unfinished: Iterable[Operation], now: Instant) -> list[Operation]:
    """Return the operations from ``unfinished`` whose work may start at ``now``.

    Both lists are in order of creation. Work waits for all earlier work that it conflicts with,
    even if that work has not started. So the first unfinished work never waits for other work, and
    several pieces of work that only read a cluster run at the same time.
    """
    earlier: list[Touched] = []
    ready: list[Operation] = []
    for operation in unfinished:
        touched = touches(of(operation))
        if operation.starts_at <= now and not any(touched.conflicts(other) for other in earlier):
            ready.append(operation)
        earlier.append(touched)
    return ready


def unfinished(tx: Transaction) -> list[Operation]:
    """Return the operations with unfinished work, in the order of their creation."""
    where = "WHERE work IS NOT NULL AND settles_at >= ? ORDER BY rowid"
    return tx.select(Operation, where, NEVER)


def ready(tx: Transaction) -> list[Operation]:
    """Return the operations whose work may start now or is already running.

    Work waits until the operation before it in the same request has finished. It also waits for
    earlier work on the same clusters. Interrupted work is ready again after a restart. Call this
    when an operation was added or settled, and at :func:`next_start`.
    """
    return startable(unfinished(tx), tx.now)


def next_start(tx: Transaction) -> Instant | None:
    """Return the next time at which planned work starts, or None if no such time is known."""
    return tx.number(
        "SELECT min(starts_at) FROM operations "
        "WHERE work IS NOT NULL AND settles_at >= ? AND starts_at > ? AND starts_at < ?",
        *(NEVER, tx.now, NEVER),
    )
