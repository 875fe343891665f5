"""The Data APIs of a branch's databases. A child branch gets copies of its parent's Data APIs.

A Data API belongs to a branch and a database name, not to the data. So a restore of the branch
keeps its Data APIs. If a branch replaces another one, it takes over the computes and Data APIs.
"""

from msgspec.structs import replace

from neonctl_local.storage.service_tables import DataApi
from neonctl_local.storage.transactions import Transaction


def find(tx: Transaction, branch_id: str, database_name: str) -> DataApi | None:
    """Return the Data API of a database, or ``None``."""
    where = "WHERE branch_id = ? AND database_name = ?"
    return tx.first(DataApi, where, branch_id, database_name)


def copy(tx: Transaction, source_id: str, branch_id: str) -> None:
    """Give a new branch copies of its parent's Data APIs."""
    for data_api in tx.select(DataApi, "WHERE branch_id = ?", source_id):
        tx.insert(replace(data_api, id=0, branch_id=branch_id, created_at=tx.now))


def delete(tx: Transaction, branch_id: str, database_name: str) -> None:
    """Delete the Data API of a database, if it has one."""
    where = "WHERE branch_id = ? AND database_name = ?"
    tx.execute(f"DELETE FROM data_apis {where}", branch_id, database_name)


def rename(tx: Transaction, branch_id: str, name: str, new_name: str) -> None:
    """Record the new name of a database that has a Data API."""
    delete(tx, branch_id, new_name)  # the Data API of a database that a restore has removed
    where = "WHERE branch_id = ? AND database_name = ?"
    tx.execute(f"UPDATE data_apis SET database_name = ? {where}", new_name, branch_id, name)


def move(tx: Transaction, source_id: str, branch_id: str) -> None:
    """Move a branch's Data APIs to another branch, unless the same database has one there."""
    sql = "UPDATE OR IGNORE data_apis SET branch_id = ? WHERE branch_id = ?"
    tx.execute(sql, branch_id, source_id)


def move_back(tx: Transaction, ids: list[int], source_id: str, branch_id: str) -> None:
    """Move Data APIs back to ``branch_id``, from which they were moved to ``source_id``."""
    for data_api_id in ids:
        sql = "UPDATE OR IGNORE data_apis SET branch_id = ? WHERE id = ? AND branch_id = ?"
        tx.execute(sql, branch_id, data_api_id, source_id)
