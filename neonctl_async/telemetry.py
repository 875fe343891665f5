"""OpenTelemetry spans and metrics of requests and waits. Requires ``neonctl-async[otel]``.

::

    async with NeonClient(hooks=[tracing(), metering()]) as neon:
        ...
"""

from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

try:
    from opentelemetry.metrics import Meter, MeterProvider, get_meter
    from opentelemetry.trace import (
        Span,
        SpanKind,
        Status,
        StatusCode,
        Tracer,
        TracerProvider,
        get_tracer,
    )
except ImportError as _missing:
    raise ImportError(
        "OpenTelemetry is not installed: pip install 'neonctl-async[otel]'"
    ) from _missing

from neonctl_async._version import __version__
from neonctl_async.errors import APIError, NeonError
from neonctl_async.hooks import (
    Hooks,
    RequestSent,
    ResponseReceived,
    RetryPlanned,
    StatusChanged,
    WaitEnded,
    WaitStarted,
)
from neonctl_async.waiting.tracked import SUCCEEDED

Attributes = dict[str, str | int | bool]

_SECONDS: Final = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
"""The bucket boundaries that the HTTP semantic conventions recommend."""
_WAIT_SECONDS: Final = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]


def tracing(tracer_provider: TracerProvider | None = None) -> Hooks:
    """Return hooks that record a span for each request and each wait.

    ``tracer_provider`` defaults to the global one. The span of a request follows version 1.23 and
    later of the semantic conventions for HTTP clients. Its parent is the span in which the call was
    made. Waits share their polls, so the parent of a poll is the span in which polling started. No
    trace context is sent to Neon.
    """
    spans = _Spans(get_tracer("neonctl_async", __version__, tracer_provider))
    return Hooks(
        on_request=spans.start_request,
        on_response=spans.end_request,
        on_wait_started=spans.start_wait,
        on_wait_ended=spans.end_wait,
    )


def metering(meter_provider: MeterProvider | None = None) -> Hooks:
    """Return hooks that record metrics of requests, retries and waits.

    ``meter_provider`` defaults to the global one. The metrics of requests follow version 1.23 and
    later of the semantic conventions for HTTP clients. The names of the other metrics start with
    ``neon.client``.
    """
    metrics = _Metrics(get_meter("neonctl_async", __version__, meter_provider))
    return Hooks(
        on_request=metrics.start_request,
        on_response=metrics.end_request,
        on_retry=metrics.count_retry,
        on_status=metrics.see_status,
        on_wait_ended=metrics.end_wait,
    )


class _Spans:
    """The open spans, by the event that started them."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._open: dict[RequestSent | WaitStarted, Span] = {}

    def start_request(self, request: RequestSent) -> None:
        self._open[request] = self._tracer.start_span(
            request.route,
            kind=SpanKind.CLIENT,
            attributes=_attributes_of(request)
            | {"url.full": request.url, "neon.request.id": request.id},
        )

    def end_request(self, response: ResponseReceived) -> None:
        span = self._open.pop(response.request)
        if response.status is not None:
            span.set_attribute("http.response.status_code", response.status)
        if error := _error_of(response):
            _fail(span, error)
        span.end()

    def start_wait(self, wait: WaitStarted) -> None:
        attributes: dict[str, str | int] = {"neon.operations.count": len(wait.operations)}
        if wait.goal:
            attributes["neon.wait.goal"] = wait.goal
        self._open[wait] = self._tracer.start_span("wait", attributes=attributes)

    def end_wait(self, ended: WaitEnded) -> None:
        span = self._open.pop(ended.wait)
        span.set_attribute("neon.operations.unsuccessful", ended.unsuccessful)
        span.set_attribute("neon.operations.pending", ended.pending)
        if error := _error_of_wait(ended):
            _fail(span, error)
        span.end()


class _Metrics:
    """The instruments of a client."""

    def __init__(self, meter: Meter) -> None:
        self._requests = meter.create_histogram(
            "http.client.request.duration",
            "s",
            "Duration of requests, with retries and polls.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._active = meter.create_up_down_counter(
            "http.client.active_requests", "{request}", "Requests that hold a slot of the client."
        )
        self._retries = meter.create_counter(
            "neon.client.retries", "{retry}", "Retries of calls, without polls."
        )
        self._waits = meter.create_histogram(
            "neon.client.wait.duration",
            "s",
            "Duration of waits.",
            explicit_bucket_boundaries_advisory=_WAIT_SECONDS,
        )
        self._lateness = meter.create_histogram(
            "neon.client.wait.lateness",
            "s",
            "Time from the end of a successful operation until a wait sees it, by the local clock.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )

    def start_request(self, request: RequestSent) -> None:
        self._active.add(1, _attributes_of(request))

    def end_request(self, response: ResponseReceived) -> None:
        attributes = _attributes_of(response.request)
        self._active.add(-1, attributes)
        if response.status is not None:
            attributes["http.response.status_code"] = response.status
        if error := _error_of(response):
            attributes["error.type"] = error
        self._requests.record(response.seconds, attributes)

    def count_retry(self, retry: RetryPlanned) -> None:
        self._retries.add(1, {"error.type": _kind(retry.error)})

    def see_status(self, change: StatusChanged) -> None:
        operation = change.operation
        # Without an earlier status, the operation may have finished before the wait.
        if change.previous is not None and operation.status in SUCCEEDED:
            seconds = (datetime.now(UTC) - operation.updated_at).total_seconds()
            self._lateness.record(
                max(seconds, 0.0), {"neon.operation.action": str(operation.action)}
            )

    def end_wait(self, ended: WaitEnded) -> None:
        error = _error_of_wait(ended)
        self._waits.record(ended.seconds, {"error.type": error} if error else {})


def _attributes_of(request: RequestSent) -> Attributes:
    url = urlsplit(request.url)
    method, _, template = request.route.partition(" ")
    return {
        "http.request.method": method,
        "server.address": url.hostname or "",
        "server.port": url.port or (443 if url.scheme == "https" else 80),
        "url.template": template,
        "neon.request.is_poll": request.is_poll,
    }


def _error_of(response: ResponseReceived) -> str | None:
    """Return why a request failed, or None if it did not."""
    if response.status is not None:
        return str(response.status) if response.status >= 400 else None
    return "cancelled" if response.error is None else _kind(response.error)


def _error_of_wait(ended: WaitEnded) -> str | None:
    """Return why a wait failed, or None if it did not."""
    if ended.error is not None:
        return _kind(ended.error)
    return "unsuccessful" if ended.unsuccessful else None


def _kind(error: NeonError) -> str:
    """Return an error's status or class name, but not its message, which can be long."""
    return str(error.status) if isinstance(error, APIError) else type(error).__qualname__


def _fail(span: Span, error: str) -> None:
    span.set_attribute("error.type", error)
    span.set_status(Status(StatusCode.ERROR))
