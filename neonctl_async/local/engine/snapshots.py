"""The content of a snapshot, and its deletion."""

import msgspec

from neonctl_async.local.engine.operations import OperationChain
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import Database, Role, Snapshot


class SnapshotContent(msgspec.Struct, frozen=True):
    """The roles and databases that a snapshot contains."""

    roles: list[Role]
    databases: list[Database]


def delete_snapshot(tx: Transaction, snapshot: Snapshot, chain: OperationChain) -> None:
    """Delete a snapshot. Branches that were restored from it stay."""
    chain.add("delete_timeline")
    tx.update(snapshot, deleted_at=tx.now)
