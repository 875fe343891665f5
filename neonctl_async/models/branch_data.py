"""Records of the data of branches: schemas, and anonymized branches with their masking rules."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model, Timestamp


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


class MaskingRule(Model, kw_only=True):
    """How a column is masked: with a function of PostgreSQL Anonymizer, or a literal value."""

    database_name: str
    schema_name: str
    table_name: str
    column_name: str
    masking_function: str | UnsetType = UNSET
    masking_value: str | UnsetType = UNSET


class MaskingRulesResponse(Model, kw_only=True):
    """The answer that shows the masking rules of a branch."""

    masking_rules: list[MaskingRule]


class AnonymizationRun(Model, kw_only=True):
    """A run of an anonymization."""

    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    triggered_by: str | None = None
    triggered_by_username: str | None = None
    masked_columns: int | None = None


class AnonymizedBranchStatus(Model, kw_only=True):
    """How far the anonymization of a branch has come.

    ``state`` is ``created``, ``initialized``, ``initialization_error``, ``anonymizing``,
    ``anonymized`` or ``error``.
    """

    project_id: str
    branch_id: str
    state: str
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    status_message: str | None = None
    failed_at: Timestamp | None = None
    last_run: AnonymizationRun | None = None
