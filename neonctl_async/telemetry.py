"""OpenTelemetry spans for requests and waits. Requires ``neonctl-async[otel]``.

::

    async with NeonClient(hooks=[tracing()]) as neon:
        ...
"""

from urllib.parse import urlsplit

try:
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
from neonctl_async.hooks import Hooks, RequestSent, ResponseReceived, WaitEnded, WaitStarted


def tracing(tracer_provider: TracerProvider | None = None) -> Hooks:
    """Return hooks that record a span for each request and each wait.

    ``tracer_provider`` defaults to the global one. The span of a request follows the semantic
    conventions for HTTP clients 1.23 and later. Its parent is the span in which the call was made.
    Waits share their polls, so the parent of a poll is the span in which polling started. No trace
    context is sent to Neon.
    """
    spans = _Spans(get_tracer("neonctl_async", __version__, tracer_provider))
    return Hooks(
        on_request=spans.start_request,
        on_response=spans.end_request,
        on_wait_started=spans.start_wait,
        on_wait_ended=spans.end_wait,
    )


class _Spans:
    """The open spans, by the event that started them."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._open: dict[RequestSent | WaitStarted, Span] = {}

    def start_request(self, request: RequestSent) -> None:
        url = urlsplit(request.url)
        method, _, template = request.route.partition(" ")
        self._open[request] = self._tracer.start_span(
            request.route,
            kind=SpanKind.CLIENT,
            attributes={
                "http.request.method": method,
                "server.address": url.hostname or "",
                "server.port": url.port or (443 if url.scheme == "https" else 80),
                "url.full": request.url,
                "url.template": template,
                "neon.request.id": request.id,
                "neon.request.is_poll": request.is_poll,
            },
        )

    def end_request(self, response: ResponseReceived) -> None:
        span = self._open.pop(response.request)
        if response.status is None:
            _fail(span, response.error or "cancelled")
        else:
            span.set_attribute("http.response.status_code", response.status)
            if response.status >= 400:
                _fail(span, response.status)
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
        if ended.error is not None:
            _fail(span, ended.error)
        elif ended.unsuccessful:
            _fail(span, "unsuccessful")
        span.end()


def _fail(span: Span, error: Exception | int | str) -> None:
    """Mark a span as failed. It shows only the kind of the error, because a text can be long."""
    kind = type(error).__qualname__ if isinstance(error, Exception) else str(error)
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))
