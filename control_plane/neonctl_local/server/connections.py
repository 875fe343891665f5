"""Client connections: their deadlines, their number, and requests that are not HTTP.

aiohttp closes idle connections. This module adds deadlines for the head of a request and for
sending a response, limits the number of connections, and turns parser errors into error responses
of the API.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar, cast

from aiohttp import EMPTY_PAYLOAD, StreamReader, web
from aiohttp.http import RawRequestMessage
from aiohttp.web_request import BaseRequest
from multidict import CIMultiDict, CIMultiDictProxy

from neonctl_local.errors import ApiError
from neonctl_local.server.http_errors import request_timeout, server_logger
from neonctl_local.server.memory import Memory, Reservation
from neonctl_local.settings import ConnectionLimits

T = TypeVar("T")

_IDLE_BEFORE_EVICTION: Final = 1.0
_REFUSALS: Final = 64
"""The number of connections above the limit that get a 503. Further ones are closed at once."""

RespondToError = Callable[[int, BaseException | None, str | None], web.Response]
"""Returns the response for an error outside the application, from a status, cause and message."""
MAXIMUM_HEAD: Final = 1 << 16
"""How many bytes of an incomplete head are kept. The parser itself would keep 1 MB."""
_ACCEPT_STEPS: Final = 3
"""How many iterations of the event loop asyncio needs to serve a connection after accepting it."""


class Connections:
    """The open connections of a server, up to a limit."""

    def __init__(
        self,
        limits: ConnectionLimits,
        respond_to_error: RespondToError,
        refuse_head: Callable[[ApiError], bytes],
    ) -> None:
        self.limits: Final = limits
        self.respond_to_error: Final = respond_to_error
        self.refuse_head: Final = refuse_head
        self.memory: Final = Memory(limits.memory)
        # asyncio accepts hundreds of connections before this object sees the first of them.
        self._maximum = min(limits.maximum, max(1, _descriptor_limit() // 2))
        self._admitted = 0
        self._refused = 0
        # Each idle connection, with the time when it became idle. The first has been idle longest.
        self._idle: dict[Connection, float] = {}

    def connect(self, connection: "Connection", now: float) -> None:
        """Admit a new connection, or mark it as refused if the limit is reached."""
        if self._admitted >= self._maximum and not self._evict(now):
            connection.is_refused = True
            self._refused += 1
            if self._refused > _REFUSALS:
                connection.abort()
            return
        self._admitted += 1
        self._idle[connection] = now

    def disconnect(self, connection: "Connection") -> None:
        """Forget a closed connection."""
        self._idle.pop(connection, None)
        if connection.is_refused:
            self._refused -= 1
        else:
            self._admitted -= 1

    def mark_busy(self, connection: "Connection") -> None:
        """Keep a connection open while it has a request."""
        self._idle.pop(connection, None)

    def mark_idle(self, connection: "Connection", now: float) -> None:
        """Allow a connection to be closed to make room for a new one."""
        if not connection.is_refused:
            self._idle[connection] = now

    def _evict(self, now: float) -> bool:
        """Close the connection that has been idle longest. Return False if all are too recent."""
        for connection, since in self._idle.items():
            # The request of a connection that was just opened may be on its way.
            if now - since < _IDLE_BEFORE_EVICTION:
                break
            del self._idle[connection]
            connection.abort()
            return True
        return False


class Connection(web.RequestHandler):
    """A client's connection."""

    def __init__(self, server: web.Server, connections: Connections) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=connections.limits.idle,
            lingering_time=0,
            auto_decompress=False,  # 1 MB can become 1 GiB, even if the body is only drained
            access_log=None,  # type: ignore[arg-type]  # aiohttp accepts None, but declares Logger
            logger=server_logger,
        )
        self._event_loop = loop
        self._connections = connections
        self._client: asyncio.Transport | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self.limits: Final = connections.limits
        self.reservation: Reservation = Reservation(connections.memory)
        """The memory of the current request, until its response is sent."""
        self.on_data: Callable[[int], None] = lambda _size: None
        """Called with the number of bytes that were received."""
        self.body_deadline: float = 0.0
        """The event loop time by which the current body must be complete."""
        self._head_size = 0
        """The number of bytes received so far of an incomplete head."""
        self._parsed_body: StreamReader = EMPTY_PAYLOAD
        """The body of the last request that was parsed. What follows its end is a head."""
        self._is_handling = False
        self._body: StreamReader = EMPTY_PAYLOAD
        self._when_lost: Callable[[], object] | None = None
        self.is_refused = False
        """True if this connection was one too many for the server: its request gets a 503."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection."""
        # A transport of uvloop has the methods of asyncio.Transport, and another base class.
        self._client = cast("asyncio.Transport", transport)
        with suppress(AttributeError):  # a transport of uvloop reads as much as it wants
            # What is read together with the end of the previous request is not counted.
            transport.max_size = MAXIMUM_HEAD  # type: ignore[attr-defined]  # asyncio's, for a read
        super().connection_made(transport)
        self._connections.connect(self, self._event_loop.time())
        if self.is_refused:
            self._start_head_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the timers."""
        self._cancel_timers()
        if self._client is not None:
            self._client = None
            self._connections.disconnect(self)
        if self._when_lost is not None:
            self._when_lost()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Start the deadline of the head at its first byte, and parse the data."""
        if not self._is_handling and data:
            self._start_head_timer()
        self.on_data(len(data))
        before = len(self._messages)  # aiohttp's own: the requests that it has parsed
        is_head = self._parsed_body.is_eof() and self._payload_parser is None
        super().data_received(data)
        if len(self._messages) > before:
            self._head_size = 0
            self._parsed_body = self._messages[-1][1]
        elif is_head:
            self._head_size += len(data)
        if self._head_size > MAXIMUM_HEAD:
            self._refuse_head(
                ApiError(
                    431,
                    f"the request line and the headers have more than {MAXIMUM_HEAD >> 10} KiB",
                    headers={"Connection": "close"},
                )
            )
        if self._is_handling and self._messages and not self._body.is_eof():
            # The next message follows an incomplete body: it is the error of a malformed chunk.
            # Without this, the reader of the body would wait until its deadline.
            self._body.set_exception(web.RequestPayloadError("malformed chunk"))

    def request_started(self, body: StreamReader) -> None:
        """Stop the deadline of the head, and start that of the body."""
        self._is_handling = True
        self.reservation = Reservation(self._connections.memory)
        self._body = body
        self.body_deadline = self._event_loop.time() + self.limits.body
        self._connections.mark_busy(self)
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        if self._client is not None and not self._client.get_write_buffer_size():
            self._cancel_send_timer()  # it was for an earlier response, which has been read

    @contextmanager
    def when_lost(self, callback: Callable[[], object]) -> Generator[None]:
        """Call a function if the connection is closed while its request is being handled."""
        if self._client is None:
            callback()
        self._when_lost = callback
        try:
            yield
        finally:
            self._when_lost = None

    async def finish_response(
        self, request: BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the response. The connection is idle afterwards."""
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._is_handling = False
            self.reservation.release()
            if self._client is not None:
                self._connections.mark_idle(self, self._event_loop.time())
                if self._client.get_write_buffer_size():
                    self._start_send_timer()

    def pause_writing(self) -> None:
        """Start the deadline by which the client must read its response."""
        super().pause_writing()
        self._start_send_timer()

    def resume_writing(self) -> None:
        """Stop the deadline: the client has read most of the response."""
        super().resume_writing()
        self._cancel_send_timer()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return an API error response for a request that the application did not handle."""
        if request.writer.output_size > 0:
            raise ConnectionError("a part of another response was sent")
        if status >= 500:
            server_logger.error("a request failed outside its route: %r", exc)
        response = self._connections.respond_to_error(status, exc, message)
        response.force_close()
        return response

    def abort(self) -> None:
        """Close the connection at once."""
        if self._client is not None:
            self._client.abort()

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            seconds = self.limits.head
            self._head_timer = self._event_loop.call_later(seconds, self._on_head_timeout)

    def _on_head_timeout(self) -> None:
        self._refuse_head(request_timeout("head", self.limits.head))

    def _refuse_head(self, error: ApiError) -> None:
        if self._client is not None and not self._client.is_closing():
            self._client.write(self._connections.refuse_head(error))
        self.force_close()

    def _start_send_timer(self) -> None:
        if self._send_timer is None:
            seconds = self.limits.send
            self._send_timer = self._event_loop.call_later(seconds, self._on_send_timeout)

    def _cancel_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _on_send_timeout(self) -> None:
        self._send_timer = None
        if self._client is not None and self._client.get_write_buffer_size():
            self._client.abort()

    def _cancel_timers(self) -> None:
        for timer in (self._head_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._send_timer = None


def ignore_other_expectations(server: web.Server) -> None:
    """Hide ``Expect`` headers other than 100-continue from aiohttp's router.

    The router rejects these before the API key is checked, and fails if they are not text.
    """
    make_request = server.request_factory

    def make(message: RawRequestMessage, *rest: Any) -> BaseRequest:  # noqa: ANN401 - as aiohttp calls it
        if message.headers.get("Expect", "100-continue").lower() != "100-continue":
            headers = CIMultiDict(message.headers)
            del headers["Expect"]
            message = message._replace(headers=CIMultiDictProxy(headers))
        return make_request(message, *rest)

    server.request_factory = make


def connection_of(request: web.Request) -> Connection:
    """Return the connection of a request."""
    connection = request.protocol
    assert isinstance(connection, Connection), "the server makes all connections"
    return connection


async def while_connected(request: web.Request, work: Awaitable[T]) -> T:
    """Return the result of ``work``.

    If the client disconnects, cancel ``work`` and raise ConnectionError.
    """
    handling, has_left = asyncio.current_task(), False
    assert handling is not None

    def leave() -> None:
        nonlocal has_left
        has_left = True
        handling.cancel()

    with connection_of(request).when_lost(leave):
        try:
            return await work
        except asyncio.CancelledError:
            if has_left and not handling.uncancel():
                raise ConnectionError("the client has disconnected") from None
            raise


def refuse_if_full(connection: Connection) -> None:
    """Raise 503 if the server had too many connections when this one was opened."""
    if connection.is_refused:
        raise ApiError(
            503,
            "the server has too many open connections: close some, or raise the limit with "
            "--connections",
            headers={"Retry-After": "1", "Connection": "close"},
        )


def _descriptor_limit() -> int:
    if sys.platform == "win32":
        return sys.maxsize
    import resource  # noqa: PLC0415 - does not exist on Windows

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


async def stop_listening(server: asyncio.Server) -> None:
    """Close the listening sockets of ``server`` once all accepted connections are served.

    Open connections stay open. ``asyncio.Server.close()`` alone leaks a connection that asyncio has
    accepted but not served yet, because nothing closes its socket.
    """
    loop = asyncio.get_running_loop()
    try:
        for listening in server.sockets:
            # On Windows, the proactor accepts connections. It has no readers.
            with suppress(NotImplementedError):
                loop.remove_reader(listening.fileno())
        for _ in range(_ACCEPT_STEPS):
            await asyncio.sleep(0)
    finally:
        server.close()
