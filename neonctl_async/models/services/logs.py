"""Logs of a branch's services."""

from neonctl_async.models.base import Model, OpenEnum, Pagination, Timestamp


class LogSource(OpenEnum):
    """The service that wrote a log record. ``pg_endpoint`` is a compute."""

    FUNCTION = "function"
    STORAGE = "storage"
    PG_ENDPOINT = "pg_endpoint"


class LogRecord(Model, kw_only=True):
    """A log record. The fields follow OpenTelemetry."""

    timestamp: Timestamp
    """The time of the record, rounded to microseconds."""
    message: str
    """The text of the record. A structured body is encoded as JSON with sorted keys."""
    attributes: dict[str, object]
    """The attributes of the record and of its service."""
    source: LogSource | None = None
    entity_id: str | None = None
    """Neon's id of the instance that wrote the record."""
    service_name: str | None = None
    scope_name: str | None = None
    """The name of the instrumentation scope."""
    severity_number: int | None = None
    severity_text: str | None = None
    trace_id: str | None = None
    span_id: str | None = None


class LogFieldValues(Model, kw_only=True):
    """The values of a field in log records."""

    values: list[str]
    is_truncated: bool
    """True if there are more values; ``values`` is then an arbitrary selection."""


class LogFieldsResponse(Model, kw_only=True):
    """A response that lists the fields of log records."""

    fields: list[str]


class LogsPage(Model, kw_only=True):
    """A page of log records."""

    logs: list[LogRecord]
    is_truncated: bool
    next_cursor: str | None = None

    @property
    def pagination(self) -> Pagination:
        """The cursor of the next page."""
        return Pagination(next=self.next_cursor)
