from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from neonctl_async import APIError, NeonClient, NotFoundError, RetryPolicy
from neonctl_async.types import LogFieldValues, LogRecord
from tests.models.records import JsonObject
from tests.models.services.records import LOG_RECORD
from tests.resources.wire import Call, Response, record, responding_in_sequence, responding_with
from tests.support.records import responding
from tests.support.server import drop, http_response

PATH = "/projects/p-1/branches/br-1/logs"
FROM = datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))
TO = datetime(2026, 1, 2, tzinfo=UTC)
FULL_RECORD: JsonObject = {
    "timestamp": "2026-01-01T12:00:00.123456789Z",
    "message": '{"bytes":1024}',
    "source": "storage",
    "entity_id": "st-1",
    "service_name": "storage",
    "scope_name": "access",
    "severity_number": 9,
    "severity_text": "INFO",
    "trace_id": "0" * 32,
    "span_id": "0" * 16,
    "attributes": {"http_status": 200, "tags": ["a", None], "user": {"name": "Ada"}},
}
FILTERS: dict[str, Any] = {
    "source": "storage",
    "service_name": "storage",
    "scope_name": "access",
    "minimum_severity": "warn",
    "severity_text": "WARN",
    "body_contains": "object_key",
    "trace_id": "0" * 32,
}
VALUES = record(LogFieldValues, {"values": ["shop", "report"], "is_truncated": True})


def page(*records: JsonObject, next_cursor: str | None = None) -> JsonObject:
    cursor = {} if next_cursor is None else {"next_cursor": next_cursor}
    return {"logs": list(records), "is_truncated": bool(next_cursor), **cursor}


def logged(*messages: str) -> list[JsonObject]:
    return [{**LOG_RECORD, "message": message} for message in messages]


CALLS = [
    Call(
        lambda neon: neon.logs.query("p-1", "br-1").collect(),
        f"POST {PATH}/query",
        Response(page(), []),
        body={},
    ),
    Call(
        lambda neon: neon.logs.query(
            "p-1",
            "br-1",
            start_time=FROM,
            end_time=TO,
            limit=1000,
            sort_order="asc",
            **FILTERS,
        ).collect(),
        f"POST {PATH}/query",
        Response(page(next_cursor=""), []),
        body={
            "start_time": "2026-01-01T14:00:00+02:00",
            "end_time": "2026-01-02T00:00:00Z",
            "limit": 1000,
            "sort_order": "asc",
            **FILTERS,
        },
    ),
    Call(
        lambda neon: neon.logs.query(
            "p-1", "br-1", since=timedelta(minutes=1, seconds=30), logql='{source="storage"}'
        ).collect(),
        f"POST {PATH}/query",
        Response(page(), []),
        body={"since": "90000ms", "logql": '{source="storage"}'},
    ),
    Call(
        lambda neon: neon.logs.list_fields("p-1", "br-1"),
        f"GET {PATH}/fields",
        Response({"fields": ["service_name", "source"]}, ["service_name", "source"]),
    ),
    Call(
        lambda neon: neon.logs.list_field_values("p-1", "br-1", "service_name"),
        f"GET {PATH}/fields/service_name/values",
        VALUES,
    ),
    Call(
        lambda neon: neon.logs.list_field_values(
            "p-1", "br-1", "http.route", since="6h", end_time=TO, source="function", limit=5
        ),
        f"GET {PATH}/fields/http.route/values",
        VALUES,
        query={
            "since": "6h",
            "end_time": "2026-01-02T00:00:00+00:00",
            "source": "function",
            "limit": "5",
        },
    ),
    Call(
        lambda neon: neon.logs.list_field_values("p-1", "br-1", "source", start_time=FROM),
        f"GET {PATH}/fields/source/values",
        VALUES,
        query={"start_time": "2026-01-01T12:00:00+00:00"},
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


async def test_record_has_every_field_and_its_time_rounded_to_microseconds() -> None:
    async with responding_with(page(FULL_RECORD)) as exchange:
        [found] = await exchange.neon.logs.query("p-1", "br-1").collect()
    assert found.timestamp == datetime(2026, 1, 1, 12, 0, 0, 123457, UTC)
    assert found.attributes == FULL_RECORD["attributes"]
    others = FULL_RECORD.keys() - {"timestamp"}
    assert {name: getattr(found, name) for name in others} == {
        name: FULL_RECORD[name] for name in others
    }


async def test_next_page_repeats_the_body_with_the_cursor() -> None:
    async with responding_in_sequence(
        page(*logged("c", "b"), next_cursor="page-2"), page(*logged("a"))
    ) as exchange:
        query = exchange.neon.logs.query("p-1", "br-1", since="1h", source="function", limit=2)
        assert [found.message async for found in query] == ["c", "b", "a"]
    sent = {"since": "1h", "source": "function", "limit": 2}
    assert [request.body for request in exchange.all_sent] == [sent, {**sent, "cursor": "page-2"}]
    assert all(not request.query for request in exchange.all_sent)


async def test_empty_page_does_not_end_a_truncated_list() -> None:
    async with responding_in_sequence(page(next_cursor="c-2"), page(*logged("a"))) as exchange:
        found = await exchange.neon.logs.query("p-1", "br-1").collect()
    assert [record.message for record in found] == ["a"]


async def test_equal_records_are_kept() -> None:
    async with responding_in_sequence(
        page(*logged("retry", "retry"), next_cursor="page-2"), page(*logged("retry"))
    ) as exchange:
        found = await exchange.neon.logs.query("p-1", "br-1").collect()
    assert [record.message for record in found] == ["retry"] * 3


async def test_page_is_requested_again_after_any_transient_failure() -> None:
    second = page(*logged("a"))
    responses = [
        http_response(200, page(*logged("b"), next_cursor="page-2")),
        http_response(502, {"message": "bad gateway"}),
        drop(),
        http_response(200, second),
    ]
    async with responding(*responses, retry=RetryPolicy(initial=0.001)) as (server, neon):
        found = await neon.logs.query("p-1", "br-1").collect()
    assert [record.message for record in found] == ["b", "a"]
    assert len(server.received) == 4


async def test_no_page_after_the_limit_of_a_list_is_requested() -> None:
    pages = [page(*logged("b", "a"), next_cursor=cursor) for cursor in ("page-2", "page-3")]
    async with responding_in_sequence(*pages) as exchange:
        found = await exchange.neon.logs.query("p-1", "br-1").collect(limit=3)
    assert len(found) == 3
    assert all(isinstance(record, LogRecord) for record in found)


async def test_rejected_query_has_a_reason() -> None:
    content = {"code": "", "message": "use one or the other", "reason": "conflicting_filters"}
    async with responding_with(content, 400) as exchange:
        with pytest.raises(APIError, match=r"one or the other \(conflicting_filters\)") as caught:
            await exchange.neon.logs.query("p-1", "br-1", logql="{}", source="storage").collect()
    assert caught.value.reason == "conflicting_filters"


async def test_branch_without_logs_is_a_missing_object_with_a_reason() -> None:
    content = {"code": "", "message": "no logs", "reason": "telemetry_not_enabled"}
    async with responding_with(content, 404) as exchange:
        with pytest.raises(NotFoundError) as caught:
            await exchange.neon.logs.list_fields("p-1", "br-1")
    assert caught.value.reason == "telemetry_not_enabled"


@pytest.mark.parametrize("since", [timedelta(0), timedelta(seconds=-1), timedelta(microseconds=9)])
def test_duration_that_is_not_positive_is_rejected_before_the_request(since: timedelta) -> None:
    with pytest.raises(ValueError, match="expected a duration of at least one millisecond"):
        NeonClient("key").logs.query("p-1", "br-1", since=since)


def test_time_without_a_time_zone_is_rejected_before_the_request() -> None:
    with pytest.raises(ValueError, match="start_time is 2026-01-01"):
        NeonClient("key").logs.query("p-1", "br-1", start_time=datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake


@pytest.mark.parametrize("limit", [0, 1001])
def test_limit_out_of_range_is_rejected_before_the_request(limit: int) -> None:
    with pytest.raises(ValueError, match=f"limit is {limit}: expected 1 to 1000"):
        NeonClient("key").logs.query("p-1", "br-1", limit=limit)
