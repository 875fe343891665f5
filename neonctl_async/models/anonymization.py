"""Anonymized branches: what is masked in them, and how far that has come."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model, Timestamp


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
