"""Logs of a branch."""

from datetime import datetime, timedelta
from typing import Literal

from msgspec import UNSET, UnsetType

from neonctl_async.models.services.logs import (
    LogFieldsResponse,
    LogFieldValues,
    LogRecord,
    LogsPage,
)
from neonctl_async.pagination import Page, Paginator
from neonctl_async.resources.base import Resource, SortOrder, check_within, drop_unset

MAX_PAGE = 1000

_LOGS = "/projects/{project_id}/branches/{branch_id}/logs"
_FIELDS = f"{_LOGS}/fields"
_MILLISECOND = timedelta(milliseconds=1)


class Logs(Resource):
    """Logs of a branch's services: functions, storage and computes.

    A period starts at ``start_time`` or, with ``since``, that long before its end. ``since`` is a
    timedelta, or a string such as ``30m``, with the unit ``ms``, ``s``, ``m``, ``h`` or ``d``. The
    period ends before ``end_time``, by default now. It is at most seven days long.

    A rejected request raises an APIError with a ``reason``, such as ``time_range_too_large``. A
    NotFoundError with the ``reason`` ``telemetry_not_enabled`` means that the branch does not
    collect logs.
    """

    def query(
        self,
        project_id: str,
        branch_id: str,
        *,
        since: str | timedelta | UnsetType = UNSET,
        start_time: datetime | UnsetType = UNSET,
        end_time: datetime | UnsetType = UNSET,
        limit: int | UnsetType = UNSET,
        sort_order: SortOrder | UnsetType = UNSET,
        source: str | UnsetType = UNSET,
        service_name: str | UnsetType = UNSET,
        scope_name: str | UnsetType = UNSET,
        minimum_severity: Literal["trace", "debug", "info", "warn", "error", "fatal"]
        | UnsetType = UNSET,
        severity_text: str | UnsetType = UNSET,
        body_contains: str | UnsetType = UNSET,
        trace_id: str | UnsetType = UNSET,
        logql: str | UnsetType = UNSET,
    ) -> Paginator[LogRecord]:
        """List the log records that match all filters, by default the newest first.

        The default period is the last hour. ``limit`` is the page size, 1 to 1000. ``source`` is a
        :class:`LogSource`. ``body_contains`` is part of the message, and is case-sensitive; JSON
        messages contain no spaces outside strings. ``trace_id`` consists of 32 lowercase
        hexadecimal digits. ``service_name``, ``scope_name`` and ``severity_text`` must match
        exactly.

        ``logql``, a LogQL expression of stream selectors and line filters, replaces the filters
        from ``source`` to ``trace_id``. The query language may change. Beta: Neon may change this
        endpoint.
        """
        check_within("limit", limit, 1, MAX_PAGE)
        body = drop_unset(
            since=_duration(since),
            start_time=start_time,
            end_time=end_time,
            limit=limit,
            sort_order=sort_order,
            source=source,
            service_name=service_name,
            scope_name=scope_name,
            minimum_severity=minimum_severity,
            severity_text=severity_text,
            body_contains=body_contains,
            trace_id=trace_id,
            logql=logql,
        )
        return self._pages(project_id, branch_id, body)

    def _pages(
        self, project_id: str, branch_id: str, body: dict[str, object]
    ) -> Paginator[LogRecord]:
        async def fetch(cursor: str | None) -> Page[LogRecord]:
            sent = body if cursor is None else {**body, "cursor": cursor}
            page = await self._send(
                "POST", f"{_LOGS}/query", LogsPage, project_id, branch_id, body=sent
            )
            return Page(page.logs, page.pagination, is_truncated=page.is_truncated)

        return Paginator(fetch, _never_equal)

    async def list_fields(self, project_id: str, branch_id: str) -> list[str]:
        """Return the names of the fields whose values :meth:`list_field_values` returns.

        Neon finds the names in the branch's records. Beta: Neon may change this endpoint.
        """
        response = await self._send("GET", _FIELDS, LogFieldsResponse, project_id, branch_id)
        return response.fields

    async def list_field_values(
        self,
        project_id: str,
        branch_id: str,
        field_name: str,
        *,
        since: str | timedelta | UnsetType = UNSET,
        start_time: datetime | UnsetType = UNSET,
        end_time: datetime | UnsetType = UNSET,
        source: str | UnsetType = UNSET,
        limit: int | UnsetType = UNSET,
    ) -> LogFieldValues:
        """Return the values of a field, at most ``limit``.

        The default period is the last six hours. ``source``, a :class:`LogSource`, limits the
        search to the records of one service. Beta: Neon may change this endpoint.
        """
        check_within("limit", limit, 1)
        return await self._send(
            "GET",
            f"{_FIELDS}/{{field_name}}/values",
            LogFieldValues,
            project_id,
            branch_id,
            field_name,
            query={
                "since": _duration(since),
                "start_time": start_time,
                "end_time": end_time,
                "source": source,
                "limit": limit,
            },
        )


def _duration(since: str | timedelta | UnsetType) -> str | UnsetType:
    """Return a duration in Neon's format, in milliseconds if it was a timedelta."""
    if not isinstance(since, timedelta):
        return since
    if since < _MILLISECOND:
        raise ValueError(f"since is {since}: expected a duration of at least one millisecond")
    return f"{since // _MILLISECOND}ms"


def _never_equal(_record: LogRecord) -> object:
    """Return a new key for each record: records have no id, and equal ones are not duplicates."""
    return object()
