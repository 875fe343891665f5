"""Schemas of the databases of a branch."""

from neonctl_async.models.base import Model


class ColumnSchema(Model, kw_only=True):
    """A column of a table."""

    name: str
    type: str
    nullable: bool | None = None
    generated: bool | None = None


class ReferencedTable(Model, kw_only=True):
    """What a foreign key refers to."""

    schema: str
    table: str
    columns: list[str]


class TableConstraint(Model, kw_only=True):
    """A constraint; ``type`` is ``primary_key``, ``unique`` or ``foreign_key``."""

    type: str
    columns: list[str]
    name: str | None = None
    referenced_table: ReferencedTable | None = None


class TableSchema(Model, kw_only=True):
    """A table, its columns and its constraints."""

    schema: str
    name: str
    columns: list[ColumnSchema]
    constraints: list[TableConstraint] = []


class DatabaseSchema(Model, kw_only=True):
    """The schema of a database, as tables."""

    tables: list[TableSchema]


class BranchSchema(Model, kw_only=True):
    """The schema of a database of a branch, in the format that was asked for."""

    sql: str | None = None
    json: DatabaseSchema | None = None


class BranchSchemaComparison(Model, kw_only=True):
    """How two schemas differ, as a unified diff; empty or None where they do not."""

    diff: str | None = None
