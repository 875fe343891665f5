"""What projects and branches have consumed."""

from neonctl_async.models.base import Model, Pagination, Timestamp


class ProjectConsumptionTimeframe(Model, kw_only=True):
    """What a project consumed within a timeframe, in seconds, bytes, and bytes times hours."""

    timeframe_start: Timestamp
    timeframe_end: Timestamp
    active_time_seconds: int | None = None
    compute_time_seconds: int | None = None
    written_data_bytes: int | None = None
    synthetic_storage_size_bytes: int | None = None
    data_storage_bytes_hour: int | None = None
    logical_size_bytes: int | None = None
    logical_size_bytes_hour: int | None = None


class ProjectConsumptionPeriod(Model, kw_only=True):
    """A billing period of a project."""

    period_id: str
    period_plan: str | None = None
    period_start: Timestamp
    period_end: Timestamp | None = None
    consumption: list[ProjectConsumptionTimeframe]


class ProjectConsumption(Model, kw_only=True):
    """What a project consumed, a period after the other."""

    project_id: str
    periods: list[ProjectConsumptionPeriod]


class ConsumptionMetric(Model, kw_only=True):
    """How much was consumed of one metric, whose name tells the unit."""

    metric_name: str
    value: int


class ConsumptionTimeframe(Model, kw_only=True):
    """What was consumed within a timeframe, a value for each metric asked for."""

    timeframe_start: Timestamp | None = None
    timeframe_end: Timestamp | None = None
    metrics: list[ConsumptionMetric] = []


class ConsumptionPeriod(Model, kw_only=True):
    """A billing period."""

    period_id: str
    period_plan: str | None = None
    period_start: Timestamp
    period_end: Timestamp | None = None
    consumption: list[ConsumptionTimeframe]


class ProjectMetrics(Model, kw_only=True):
    """What a project consumed by metric, a period after the other."""

    project_id: str
    periods: list[ConsumptionPeriod]


class BranchMetrics(Model, kw_only=True):
    """What a branch consumed by metric, a period after the other."""

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
