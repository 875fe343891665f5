"""The changes to tables between two readings of a database. Pure: no I/O."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import msgspec

_TABLES: Final = frozenset({"r", "p", "m", "f"})
"""The ``relkind`` of tables, partitioned tables, materialized views and foreign tables."""


class Relation(NamedTuple):
    """A row of ``pg_class``, with its statistics counters."""

    name: str
    kind: str
    file: int | None
    """The number of the file that contains the rows; None for a relation without a file."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


class TableChange(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a table."""

    table: str
    change: Literal["created", "dropped", "rewritten", ""]
    """``rewritten`` if Postgres stores the table in a new file, which TRUNCATE causes too."""
    inserted: int | None
    """Rows, including those of transactions that were rolled back; None for a dropped table."""
    updated: int | None
    deleted: int | None


def table_changes(
    before: Mapping[int, Relation], after: Mapping[int, Relation]
) -> list[TableChange]:
    """Return the tables that changed, sorted by name. The relations are keyed by their OID."""
    changes = [
        TableChange(table=one.name, change="dropped", inserted=None, updated=None, deleted=None)
        for oid, one in before.items()
        if one.kind in _TABLES and oid not in after
    ]
    for oid, new in after.items():
        if new.kind in _TABLES:
            change = _change(before.get(oid), new)
            if change.change or change.inserted or change.updated or change.deleted:
                changes.append(change)
    return sorted(changes, key=lambda change: change.table)


def _change(old: Relation | None, new: Relation) -> TableChange:
    base = old or Relation(new.name, new.kind, new.file)
    change: Literal["created", "rewritten", ""] = "rewritten" if base.file != new.file else ""
    return TableChange(
        table=new.name,
        change="created" if old is None else change,
        inserted=_growth(base.inserted, new.inserted),
        updated=_growth(base.updated, new.updated),
        deleted=_growth(base.deleted, new.deleted),
    )


def _growth(before: int, after: int) -> int:
    """Return the growth of a counter, which starts again at 0 if the server has restarted."""
    return after - before if after >= before else after
