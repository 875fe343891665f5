"""OpenTelemetry spans and metrics, as the exporters of the SDK receive them."""

import asyncio
import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    InMemoryMetricReader,
    NumberDataPoint,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_tracer

from neonctl_async import NeonError, OperationFailedError, RetryPolicy, WaitTimeoutError, telemetry
from neonctl_async.telemetry import metering, tracing
from tests.support.fake_neon import FakeNeon
from tests.support.records import API_KEY, PROJECT, client_of, ref, responding
from tests.support.server import OK, Respond, drop, hang, http_response

pytestmark = pytest.mark.virtual_time


class FinishedSpans:
    """A tracer provider with its hooks and its finished spans."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.hooks = [tracing(self.provider)]

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if name in (None, span.name)]


@pytest.fixture
def traced() -> Iterator[FinishedSpans]:
    spans = FinishedSpans()
    yield spans
    spans.provider.shutdown()


async def test_request_span_follows_the_semantic_conventions(traced: FinishedSpans) -> None:
    async with responding(OK, hooks=traced.hooks) as (server, neon):
        await neon.request("GET", f"/projects/{PROJECT}", query={"search": "of somebody"})
        port = server.port
    [span] = traced.spans()
    assert (span.name, span.kind) == ("GET /projects/{id}", SpanKind.CLIENT)
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "server.address": "127.0.0.1",
        "server.port": port,
        "url.full": f"http://127.0.0.1:{port}/api/v2/projects/{PROJECT}",
        "url.template": "/projects/{id}",
        "neon.request.id": server.received[0].headers["x-request-id"],
        "neon.request.is_poll": False,
    }
    assert span.status.status_code is StatusCode.UNSET
    assert "traceparent" not in server.received[0].headers


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (http_response(404), "404"),
        (http_response(500), "500"),
        (drop(), "ConnectionLostError"),
        (hang, "RequestTimeoutError"),
    ],
)
async def test_failed_request_span_has_the_error_type(
    traced: FinishedSpans, response: Respond, error: str
) -> None:
    async with responding(response, hooks=traced.hooks, retry=RetryPolicy.never()) as (_, neon):
        with pytest.raises(NeonError):
            await neon.request("POST", "/projects")
    [span] = traced.spans()
    assert (span.attributes or {})["error.type"] == error
    assert span.status.status_code is StatusCode.ERROR


async def test_each_attempt_is_a_child_span_of_the_current_span(traced: FinishedSpans) -> None:
    async with responding(http_response(503), OK, hooks=traced.hooks) as (_, neon):
        tracer = get_tracer("the caller", tracer_provider=traced.provider)
        with tracer.start_as_current_span("provision") as parent:
            await neon.request("POST", "/projects")
    first, second, _ = traced.spans()
    for span, status in ((first, 503), (second, 200)):
        assert (span.attributes or {})["http.response.status_code"] == status
        assert span.parent is not None
        assert span.parent.span_id == parent.get_span_context().span_id


async def test_wait_and_each_of_its_polls_are_spans(
    fake_neon: FakeNeon, traced: FinishedSpans
) -> None:
    fake_neon.start("a", ends=1.0)
    fake_neon.start("b", ends=2.0)
    async with client_of(fake_neon, hooks=traced.hooks) as neon:
        await neon.operations.wait([ref("a"), ref("b")])
    [wait] = traced.spans("wait")
    assert dict(wait.attributes or {}) == {
        "neon.operations.count": 2,
        "neon.operations.unsuccessful": 0,
        "neon.operations.pending": 0,
    }
    assert wait.status.status_code is StatusCode.UNSET
    polls = [span for span in traced.spans() if span is not wait]
    assert len(polls) == len(fake_neon.received)
    assert all((span.attributes or {})["neon.request.is_poll"] for span in polls)


async def test_wait_for_a_state_has_its_goal(fake_neon: FakeNeon, traced: FinishedSpans) -> None:
    fake_neon.fault = lambda _request: http_response(404)
    async with client_of(fake_neon, hooks=traced.hooks) as neon:
        await neon.branches.wait_for(PROJECT, "br-1", "deleted")
    [wait] = traced.spans("wait")
    assert (wait.attributes or {})["neon.wait.goal"] == f"branch br-1 in {PROJECT} is deleted"


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        ("failed", OperationFailedError, "unsuccessful"),
        ("running", WaitTimeoutError, "WaitTimeoutError"),
    ],
)
async def test_failed_wait_span_has_the_error_type(
    fake_neon: FakeNeon, traced: FinishedSpans, status: str, kind: type[NeonError], error: str
) -> None:
    fake_neon.start("a", ends=1.0, status=status)
    async with client_of(fake_neon, hooks=traced.hooks) as neon:
        with pytest.raises(kind):
            await neon.operations.wait(ref("a"), timeout=3)
    [wait] = traced.spans("wait")
    assert (wait.attributes or {})["error.type"] == error
    assert wait.status.status_code is StatusCode.ERROR


async def test_cancelling_and_closing_leave_no_span_open(traced: FinishedSpans) -> None:
    async with responding(hang, hooks=traced.hooks) as (server, neon):
        calls: list[asyncio.Task[Any]] = [
            asyncio.create_task(neon.operations.get(PROJECT, "a")),
            asyncio.create_task(neon.operations.wait(ref("a"))),
            asyncio.create_task(neon.operations.wait(ref("b"))),
        ]
        await asyncio.sleep(1)
        calls[1].cancel()
        await neon.aclose()
        await asyncio.gather(*calls, return_exceptions=True)
    assert len(traced.spans("wait")) == 2
    assert len(traced.spans()) == 2 + len(server.received)


async def test_no_span_contains_the_key(traced: FinishedSpans) -> None:
    response = http_response(401, {"message": API_KEY})
    async with responding(response, hooks=traced.hooks) as (_, neon):
        with pytest.raises(NeonError):
            await neon.api_keys.list()
    [span] = traced.spans()
    assert API_KEY not in span.to_json()


class Recorded:
    """A meter provider with its hooks and what it recorded."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader])
        self.hooks = [metering(self.provider)]

    def points(self, name: str) -> list[HistogramDataPoint | NumberDataPoint]:
        """Return the points of a metric, one for each set of attributes."""
        data = self._reader.get_metrics_data()
        assert data is not None
        [resource] = data.resource_metrics
        [scope] = resource.scope_metrics
        return [
            point
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
            if not isinstance(point, ExponentialHistogramDataPoint)
        ]

    def counts(self, name: str, attribute: str) -> dict[object, int]:
        """Return the number of values of a metric by an attribute."""
        found: Counter[object] = Counter()
        for point in self.points(name):
            value = point.count if isinstance(point, HistogramDataPoint) else point.value
            found[(point.attributes or {}).get(attribute)] += int(value)
        return dict(found)


@pytest.fixture
def metered() -> Iterator[Recorded]:
    recorded = Recorded()
    yield recorded
    recorded.provider.shutdown()


async def test_metrics_of_requests_follow_the_semantic_conventions(metered: Recorded) -> None:
    responses = http_response(429, headers={"Retry-After": "0"}), drop(), OK
    async with responding(*responses, hooks=metered.hooks) as (server, neon):
        await neon.request("GET", f"/projects/{PROJECT}")
        port = server.port
    name = "http.client.request.duration"
    assert metered.counts(name, "error.type") == {"429": 1, "ConnectionLostError": 1, None: 1}
    assert metered.counts(name, "http.response.status_code") == {429: 1, None: 1, 200: 1}
    found = [dict(point.attributes or {}) for point in metered.points(name)]
    assert {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "server.address": "127.0.0.1",
        "server.port": port,
        "url.template": "/projects/{id}",
        "neon.request.is_poll": False,
    } in found
    assert metered.counts("neon.client.retries", "error.type") == {
        "429": 1,
        "ConnectionLostError": 1,
    }


async def test_active_requests_return_to_zero_after_a_cancellation(metered: Recorded) -> None:
    async with responding(hang, hooks=metered.hooks) as (_, neon):
        call = asyncio.create_task(neon.operations.get(PROJECT, "a"))
        await asyncio.sleep(1)
        assert metered.counts("http.client.active_requests", "http.request.method") == {"GET": 1}
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    assert metered.counts("http.client.active_requests", "http.request.method") == {"GET": 0}
    assert metered.counts("http.client.request.duration", "error.type") == {"cancelled": 1}


async def test_metrics_of_waits_show_their_durations_and_how_late_they_were(
    fake_neon: FakeNeon, metered: Recorded
) -> None:
    ended = (datetime.now(UTC) - timedelta(seconds=3)).isoformat()
    fake_neon.start("a", ends=1.0, updated_at=ended)
    fake_neon.start("b", ends=1.0, status="failed")
    async with client_of(fake_neon, hooks=metered.hooks) as neon:
        await neon.operations.wait(ref("a"))
        with pytest.raises(OperationFailedError):
            await neon.operations.wait(ref("b"))
    assert metered.counts("neon.client.wait.duration", "error.type") == {
        None: 1,
        "unsuccessful": 1,
    }
    [late] = metered.points("neon.client.wait.lateness")
    assert isinstance(late, HistogramDataPoint)
    assert (late.count, late.attributes) == (1, {"neon.operation.action": "create_branch"})
    assert 3 <= late.sum < 30
    polls = metered.counts("http.client.request.duration", "neon.request.is_poll")
    assert polls == {True: len(fake_neon.received)}


def test_import_without_opentelemetry_raises_an_error_that_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(ImportError, match=r"neonctl-async\[otel\]"):
        importlib.reload(telemetry)
