"""The consumption of projects and branches."""

from neonctl_async.models.base import Model, Pagination, Timestamp


class ProjectConsumptionTimeframe(Model, kw_only=True):
    """The consumption of a project within a timeframe. Metrics that were not requested are None."""

    timeframe_start: Timestamp
    timeframe_end: Timestamp
    active_time_seconds: int | None = None
    """Seconds during which computes were active."""
    compute_time_seconds: int | None = None
    """CPU seconds, including those of deleted computes."""
    written_data_bytes: int | None = None
    """Data written to all branches, in bytes."""
    synthetic_storage_size_bytes: int | None = None
    """Data and write-ahead log of all branches, in bytes."""
    data_storage_bytes_hour: int | None = None
    """Storage, in byte-hours."""
    logical_size_bytes: int | None = None
    logical_size_bytes_hour: int | None = None
    """Logical size, in byte-hours."""


class ProjectConsumptionPeriod(Model, kw_only=True):
    """A billing period of a project."""

    period_id: str
    period_plan: str | None = None
    """The plan that applied during the period."""
    period_start: Timestamp
    period_end: Timestamp | None = None
    """None for the current period."""
    consumption: list[ProjectConsumptionTimeframe]


class ProjectConsumption(Model, kw_only=True):
    """The consumption of a project, per billing period."""

    project_id: str
    periods: list[ProjectConsumptionPeriod]


class ConsumptionMetric(Model, kw_only=True):
    """The value of a metric."""

    metric_name: str
    """The name of the metric, including the unit, as in ``compute_unit_seconds``."""
    value: int


class ConsumptionTimeframe(Model, kw_only=True):
    """The consumption within a timeframe, with one value for each requested metric."""

    timeframe_start: Timestamp | None = None
    timeframe_end: Timestamp | None = None
    metrics: list[ConsumptionMetric] = []


class ConsumptionPeriod(Model, kw_only=True):
    """A billing period."""

    period_id: str
    period_plan: str | None = None
    """The plan that applied during the period."""
    period_start: Timestamp
    period_end: Timestamp | None = None
    """None for the current period."""
    consumption: list[ConsumptionTimeframe]


class ProjectMetrics(Model, kw_only=True):
    """The metrics of a project, per billing period."""

    project_id: str
    periods: list[ConsumptionPeriod]


class BranchMetrics(Model, kw_only=True):
    """The metrics of a branch, per billing period."""

    project_id: str
    branch_id: str
    periods: list[ConsumptionPeriod]


class ProjectConsumptionPage(Model, kw_only=True):
    """A page of ``GET /consumption_history/projects``."""

    projects: list[ProjectConsumption]
    pagination: Pagination | None = None


class ProjectMetricsPage(Model, kw_only=True):
    """A page of ``GET /consumption_history/v2/projects``."""

    projects: list[ProjectMetrics]
    pagination: Pagination | None = None


class BranchMetricsPage(Model, kw_only=True):
    """A page of ``GET /consumption_history/v2/branches``."""

    branches: list[BranchMetrics]
    pagination: Pagination | None = None
