"""Records about the data of branches: schemas, anonymized branches and their masking rules."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model, Timestamp


class ColumnSchema(Model, kw_only=True):
    """A column of a table."""

    name: str
    type: str
    """The Postgres type, such as ``bigint``."""
    nullable: bool | None = None
    generated: bool | None = None


class ReferencedTable(Model, kw_only=True):
    """The table and columns that a foreign key refers to."""

    schema: str
    table: str
    columns: list[str]


class TableConstraint(Model, kw_only=True):
    """A constraint of a table."""

    type: str
    """``primary_key``, ``unique`` or ``foreign_key``."""
    columns: list[str]
    name: str | None = None
    referenced_table: ReferencedTable | None = None
    """The target of a foreign key, otherwise None."""


class TableSchema(Model, kw_only=True):
    """A table with its columns and constraints."""

    schema: str
    name: str
    columns: list[ColumnSchema]
    constraints: list[TableConstraint] = []


class DatabaseSchema(Model, kw_only=True):
    """The schema of a database as a list of tables."""

    tables: list[TableSchema]


class BranchSchema(Model, kw_only=True):
    """The schema of a database on a branch, in the requested format; the other field is None."""

    sql: str | None = None
    """The SQL statements that create the schema."""
    json: DatabaseSchema | None = None


class BranchSchemaComparison(Model, kw_only=True):
    """The difference between two schemas."""

    diff: str | None = None
    """A unified diff; empty or None if the schemas are equal."""


class MaskingRule(Model, kw_only=True):
    """A rule that masks a column, either with a function or with a literal value."""

    database_name: str
    schema_name: str
    table_name: str
    column_name: str
    masking_function: str | UnsetType = UNSET
    """A function of the extension PostgreSQL Anonymizer."""
    masking_value: str | UnsetType = UNSET
    """The value that replaces every value of the column."""


class MaskingRulesResponse(Model, kw_only=True):
    """A response that contains the masking rules of a branch."""

    masking_rules: list[MaskingRule]


class AnonymizationRun(Model, kw_only=True):
    """One run of an anonymization."""

    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    triggered_by: str | None = None
    """The id of the user who started the run."""
    triggered_by_username: str | None = None
    masked_columns: int | None = None
    """The number of masked columns."""


class AnonymizedBranchStatus(Model, kw_only=True):
    """The progress of the anonymization of a branch."""

    project_id: str
    branch_id: str
    state: str
    """One of ``created``, ``initialized``, ``initialization_error``, ``anonymizing``,
    ``anonymized`` and ``error``."""
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    status_message: str | None = None
    failed_at: Timestamp | None = None
    last_run: AnonymizationRun | None = None
