"""The content of a snapshot, and its deletion."""

import msgspec

from neonctl_async.local.engine.operations import Chain
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import Database, Role, Snapshot


class SnapshotContent(msgspec.Struct, frozen=True):
    """What a snapshot holds of its branch."""

    roles: list[Role]
    databases: list[Database]


def delete_snapshot(tx: Transaction, snapshot: Snapshot, chain: Chain) -> None:
    """Delete a snapshot. What was restored from it stays."""
    chain.add("delete_timeline")
    tx.update(snapshot, deleted_at=tx.now)
