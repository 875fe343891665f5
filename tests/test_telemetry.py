"""OpenTelemetry spans, as the exporter of the SDK receives them."""

import asyncio
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_tracer

from neonctl_async import NeonError, OperationFailedError, RetryPolicy, WaitTimeoutError, telemetry
from neonctl_async.telemetry import tracing
from tests.support.fake_neon import FakeNeon
from tests.support.records import API_KEY, PROJECT, client_of, ref
from tests.support.server import MisbehavingServer, Respond, drop, hang, http_response, in_sequence

pytestmark = pytest.mark.virtual_time


class FinishedSpans:
    """A tracer provider, and its finished spans."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if name in (None, span.name)]


@pytest.fixture
def traced() -> Iterator[FinishedSpans]:
    spans = FinishedSpans()
    yield spans
    spans.provider.shutdown()


async def test_request_span_follows_the_semantic_conventions(traced: FinishedSpans) -> None:
    async with (
        MisbehavingServer(in_sequence(http_response(content={}))) as server,
        client_of(server, hooks=[tracing(traced.provider)]) as neon,
    ):
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
    async with (
        MisbehavingServer(in_sequence(response)) as server,
        client_of(server, hooks=[tracing(traced.provider)], retry=RetryPolicy.never()) as neon,
    ):
        with pytest.raises(NeonError):
            await neon.request("POST", "/projects")
    [span] = traced.spans()
    assert (span.attributes or {})["error.type"] == error
    assert span.status.status_code is StatusCode.ERROR


async def test_each_attempt_is_a_child_span_of_the_current_span(traced: FinishedSpans) -> None:
    async with (
        MisbehavingServer(in_sequence(http_response(503), http_response(content={}))) as server,
        client_of(server, hooks=[tracing(traced.provider)]) as neon,
    ):
        tracer = get_tracer("the caller", tracer_provider=traced.provider)
        with tracer.start_as_current_span("provision") as parent:
            await neon.request("POST", "/projects")
    first, second, _ = traced.spans()
    assert [(span.attributes or {})["http.response.status_code"] for span in (first, second)] == [
        503,
        200,
    ]
    for span in (first, second):
        assert span.parent is not None
        assert span.parent.span_id == parent.get_span_context().span_id


async def test_wait_and_each_of_its_polls_are_spans(traced: FinishedSpans) -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=1.0)
    fake_neon.start("b", ends=2.0)
    async with (
        fake_neon.server,
        client_of(fake_neon.server, hooks=[tracing(traced.provider)]) as neon,
    ):
        await neon.operations.wait([ref("a"), ref("b")])
    [wait] = traced.spans("wait")
    assert dict(wait.attributes or {}) == {
        "neon.operations.count": 2,
        "neon.operations.unsuccessful": 0,
        "neon.operations.pending": 0,
    }
    assert wait.status.status_code is StatusCode.UNSET
    polls = [span for span in traced.spans() if span is not wait]
    assert len(polls) == len(fake_neon.server.received)
    assert all((span.attributes or {})["neon.request.is_poll"] for span in polls)


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        ("failed", OperationFailedError, "unsuccessful"),
        ("running", WaitTimeoutError, "WaitTimeoutError"),
    ],
)
async def test_failed_wait_span_has_the_error_type(
    traced: FinishedSpans, status: str, kind: type[NeonError], error: str
) -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=1.0, status=status)
    async with (
        fake_neon.server,
        client_of(fake_neon.server, hooks=[tracing(traced.provider)]) as neon,
    ):
        with pytest.raises(kind):
            await neon.operations.wait(ref("a"), timeout=3)
    [wait] = traced.spans("wait")
    assert (wait.attributes or {})["error.type"] == error
    assert wait.status.status_code is StatusCode.ERROR


async def test_cancelling_and_closing_leave_no_span_open(traced: FinishedSpans) -> None:
    async with MisbehavingServer(in_sequence(hang)) as server:
        neon = client_of(server, hooks=[tracing(traced.provider)])
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
    async with (
        MisbehavingServer(in_sequence(http_response(401, {"message": API_KEY}))) as server,
        client_of(server, hooks=[tracing(traced.provider)]) as neon,
    ):
        with pytest.raises(NeonError):
            await neon.api_keys.list()
    [span] = traced.spans()
    assert API_KEY not in span.to_json()


def test_import_without_opentelemetry_raises_an_error_that_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(ImportError, match=r"neonctl-async\[otel\]"):
        importlib.reload(telemetry)
