"""The aiohttp adapter: sends a request and returns its response.

No other client module imports aiohttp.
"""

import asyncio
import io
import math
import select
import ssl
import sys
from typing import Any, TypeVar

import aiohttp
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from multidict import CIMultiDict
from yarl import URL

from neonctl_async._internal import shorten
from neonctl_async.config import Config
from neonctl_async.errors import (
    ConfigurationError,
    ConnectionFailedError,
    ConnectionLostError,
    NeonError,
    RequestTimeoutError,
    TransportError,
)
from neonctl_async.transport.api_key import ApiKey
from neonctl_async.transport.calls import Call, running_loop
from neonctl_async.transport.protocol import DEFAULT_HEADERS, REQUEST_ID, Request, Response, Wire
from neonctl_async.transport.proxies import proxy_for

T = TypeVar("T")

_DEFAULT_HEADERS = CIMultiDict(DEFAULT_HEADERS)
# Objects are requested uncompressed, so that their sizes match their records.
_STREAM_ENCODING = "identity"
_STREAM_HEADERS = CIMultiDict(
    {**DEFAULT_HEADERS, "Accept": "*/*", "Accept-Encoding": _STREAM_ENCODING}
)
MAX_PART_BYTES = 64 * 1024
"""The largest body that is sent in one part. Copying a part blocks the event loop."""


class AiohttpAdapter:
    """The HTTP connections of a client.

    The aiohttp session is created by :meth:`open` or by the first request. The adapter does not
    keep a task or a cancel scope open between requests.
    """

    def __init__(self, config: Config, wire: Wire, api_key: ApiKey) -> None:
        self._config = config
        self._wire = wire
        self._api_key = api_key
        self._tls = True if config.ca_file is None else _load_ca_file(config.ca_file)
        self._proxy = proxy_for(config.base_url) if config.trust_env else None
        self._calls: dict[str, Call] = {}
        self._http: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> aiohttp.ClientSession:
        """Return the aiohttp session, which the first call creates.

        Raises ConfigurationError if no event loop is running, or a different one than in the first
        call.
        """
        loop = running_loop()
        if self._http is None:
            self._loop = loop
            # The session never allows more requests and downloads than connections. Otherwise a
            # request could spend its connect timeout in the queue for a connection.
            connector = _Connector(limit=2 * self._config.max_connections, ssl=self._tls)
            connector.calls = self._calls
            self._http = aiohttp.ClientSession(
                connector=connector,
                response_class=_Response,
                cookie_jar=aiohttp.DummyCookieJar(),
                middlewares=(self._send_once,),
                timeout=aiohttp.ClientTimeout(
                    connect=self._config.timeout.connect,
                    ceil_threshold=math.inf,  # else timeouts above 5 s are whole seconds
                ),
                # transport.encoding limits the decompressed size; aiohttp does not.
                auto_decompress=False,
            )
        if self._loop is not loop:
            raise ConfigurationError(
                "this NeonClient belongs to another event loop: create one client for each "
                "asyncio.run(), or run the fixture and the tests that share the client on one loop"
            )
        return self._http

    async def exchange(
        self,
        request: Request[T],
        request_id: str,
        call: Call,
        *,
        keep_open: bool = False,
    ) -> Response:
        """Send a request and return its response. The adapter must be open.

        With ``keep_open``, a response with a 2xx status is an :class:`OpenResponse`. Raises
        TransportError if no complete response arrives within the timeouts of ``call``.
        """
        assert self._http is not None
        connect_timeout = self._config.timeout.connect
        headers = self._wire.headers(request, request_id)
        if keep_open:
            headers["Accept-Encoding"] = _STREAM_ENCODING
        self._calls[request_id] = call
        try:
            response = await self._http.request(
                request.method,
                URL(self._wire.url(request), encoded=True),
                data=None if request.body is None else _payload(request.body),
                headers=headers,
                allow_redirects=False,
            )
            if keep_open and 200 <= response.status < 300:
                stream = BodyStream(response, request, request_id)
                return OpenResponse(response.status, response.headers, b"", stream)
            content = response.content
            is_complete = content.is_eof()  # as nearly always
            body = content.read_nowait() if is_complete else await self._read(response, call)
            return Response(response.status, response.headers, body)
        except asyncio.CancelledError:
            if not call.is_timed_out():
                raise
            timeout = TimeoutError(call.timeout_message)
            failure = _transport_error(timeout, request, request_id, call, connect_timeout)
            cause: Exception | None = None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failure = _transport_error(error, request, request_id, call, connect_timeout)
            cause = _without_frames(error)
        finally:
            del self._calls[request_id]
        raise failure from cause

    async def aclose(self) -> None:
        """Close every connection."""
        if self._http is not None:
            await self._http.close()

    async def _read(self, response: ClientResponse, call: Call) -> bytes:
        """Return the body. Reading stops as soon as the body is larger than allowed."""
        content = response.content
        body = _Body()
        try:
            while not content.at_eof() and body.size <= self._config.max_response_bytes:
                call.restart_read_timeout()
                body.add(await content.readany())
            return body.join()
        finally:
            if not response.closed:  # a response that was read to its end has closed itself
                response.close()

    async def _send_once(
        self, request: ClientRequest, handler: ClientHandlerType
    ) -> ClientResponse:
        """Add the constant headers, send the request, and prevent retries by aiohttp.

        aiohttp repeats a GET, PUT or DELETE if a kept-alive connection breaks. Neon may already
        have executed the DELETE, so only the retry policy decides about retries.
        """
        is_stream = request.headers.get("Accept-Encoding") == _STREAM_ENCODING
        request.headers.update(_STREAM_HEADERS if is_stream else _DEFAULT_HEADERS)
        # Session headers are visible in frames and reprs; the API key must not be.
        request.headers["Authorization"] = self._api_key.answer.authorization.reveal()
        if self._proxy is not None:
            authorization = self._proxy.authorization
            proxy_headers = (
                {"Proxy-Authorization": authorization.reveal()} if authorization else None
            )
            request.update_proxy(self._proxy.url, None, proxy_headers)
        try:
            return await handler(request)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            raise _BrokenConnectionError(_text(error)) from error


class _Connector(aiohttp.TCPConnector):
    """Records in each call whether it is connecting, and discards stale kept-alive connections.

    Otherwise, aiohttp would send a request on a connection that the server has closed while the
    event loop was busy, and the request's outcome would stay unknown.
    """

    calls: dict[str, Call]
    """The calls of the requests in flight, by request id."""

    async def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """Return a connection. No part of the request is sent before that."""
        call = self.calls[req.headers[REQUEST_ID]]
        call.is_connecting = True
        while True:
            may_be_kept = bool(self._conns.get(req.connection_key))
            connection = await super().connect(req, traces, timeout)
            if not may_be_kept or _is_silent(connection):
                call.is_connecting = False
                return connection
            connection.close()


def _is_silent(connection: Connection) -> bool:
    """Return whether a kept-alive connection is open and has nothing to read, not even an EOF."""
    transport = connection.transport
    if transport is None:
        return False
    socket = transport.get_extra_info("socket")
    if socket is None:
        return True
    if sys.platform == "win32":
        return not select.select([socket], [], [], 0)[0]
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return not poll.poll(0)


class BodyStream:
    """The body of a response, read part by part."""

    def __init__(self, response: ClientResponse, request: Request[Any], request_id: str) -> None:
        self._response = response
        self._request = request
        self._request_id = request_id

    async def read(self, call: Call) -> bytes:
        """Return the next part, which is empty at the end. Raises TransportError."""
        try:
            return await self._response.content.readany()
        except asyncio.CancelledError:
            if not call.is_timed_out():
                raise
            failure = self._failure(TimeoutError(call.timeout_message), call)
            cause: Exception | None = None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failure = self._failure(error, call)
            cause = _without_frames(error)
        raise failure from cause

    def close(self) -> None:
        """Close the connection, unless the body was read to its end."""
        self._response.close()

    def _failure(self, error: Exception, call: Call) -> NeonError:
        return _transport_error(error, self._request, self._request_id, call, connect_timeout=0.0)


class OpenResponse(Response, frozen=True):
    """A response whose body has not been read yet. ``body`` is empty."""

    stream: BodyStream


def _payload(body: bytes) -> aiohttp.Payload:
    """Return a body as a payload. Tracebacks would show a password in plain bytes."""
    if len(body) <= MAX_PART_BYTES:
        return aiohttp.BytesPayload(body)
    return aiohttp.BytesIOPayload(io.BytesIO(body))


class _Body:
    """The parts of a body read so far. Tracebacks would show them if they were local variables."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self.size += len(part)

    def join(self) -> bytes:
        return b"".join(self._parts)


class _Response(ClientResponse):
    """A response whose repr hides the headers, which may contain a secret."""

    def __repr__(self) -> str:
        return f"<response {self.status}>"


def _load_ca_file(ca_file: str) -> ssl.SSLContext:
    try:
        if not ca_file:  # ssl would trust the authorities of the system
            raise FileNotFoundError("the file name is empty")
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"ca_file is {shorten(ca_file)}: expected a file with certificates in PEM format: "
            f"{error}"
        ) from error


def _transport_error(
    error: Exception, request: Request[T], request_id: str, call: Call, connect_timeout: float
) -> NeonError:
    kind: type[TransportError] = (
        ConnectionFailedError if call.is_connecting else ConnectionLostError
    )
    match error:
        case aiohttp.ConnectionTimeoutError():
            kind = RequestTimeoutError
            message = f"no connection within {connect_timeout:g} s"
        case TimeoutError():
            kind, message = RequestTimeoutError, str(error)
        case aiohttp.ClientConnectorError():
            message = _connection_problem(error)
        case aiohttp.ClientHttpProxyError():
            message = f"the proxy refused to connect: {error.status}"
        case aiohttp.ClientResponseError():
            # The text of the error quotes the response, which may contain a secret.
            message = "the response was not HTTP"
        case _:
            message = f"the connection broke: {_text(error)}"
    return kind(
        message,
        method=request.method,
        path=request.path,
        request_id=request_id,
        maybe_delivered=not call.is_connecting,
    )


def _connection_problem(error: aiohttp.ClientConnectorError) -> str:
    proxy = "the proxy " if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        hint = "(set ca_file to trust your own certificate authority)"
        cause = f"{_text(error.certificate_error)} {hint}"
    elif isinstance(error.os_error, ConnectionRefusedError):
        cause = "connection refused"
    else:
        cause = error.os_error.strerror or _text(error.os_error)
    return f"no connection to {proxy}{error.host}:{error.port}: {cause}"


def _without_frames(error: Exception) -> Exception | None:
    """Return ``error`` as a cause that does not show any part of the response, or None."""
    if isinstance(error, aiohttp.ClientResponseError):
        return None
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class _BrokenConnectionError(aiohttp.ClientError):
    """A broken connection, as an exception that aiohttp does not retry."""


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
