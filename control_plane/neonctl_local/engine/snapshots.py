"""The content of a snapshot, and its deletion."""

import msgspec

from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.services.auth import AuthContent
from neonctl_local.engine.work import DeleteClusters
from neonctl_local.storage.tables import Database, Operation, Role, Snapshot
from neonctl_local.storage.transactions import Transaction


class SnapshotContent(msgspec.Struct, frozen=True):
    """The roles, databases and Neon Auth that a snapshot contains."""

    roles: list[Role]
    databases: list[Database]
    auth: AuthContent


def delete_snapshot(tx: Transaction, snapshot: Snapshot, chain: OperationChain) -> None:
    """Delete a snapshot. Branches that were restored from it are kept."""
    chain.add(
        "delete_timeline",
        branch_id=snapshot.source_branch_id,
        work=DeleteClusters([snapshot.id]),
    )
    tx.update(snapshot, deleted_at=tx.now)


def note_taken(tx: Transaction, operation: Operation) -> None:
    """Record whether an operation that has ended took its snapshots."""
    for snapshot in tx.select(Snapshot, "WHERE creation = ?", operation.id):
        tx.update(snapshot, taken=operation.succeeds, creation=None)
