"""The one module that touches aiohttp: sends a request, hands back what came."""

import asyncio
import math
import ssl
from functools import lru_cache
from typing import TypeVar

import aiohttp
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
from yarl import URL

from neonctl_async.config import Config, Timeout
from neonctl_async.errors import (
    ConfigurationError,
    ConnectionFailedError,
    ConnectionLostError,
    NeonError,
    RequestTimeoutError,
    TransportError,
)
from neonctl_async.transport.protocol import DEFAULT_HEADERS, Request, Response, Wire
from neonctl_async.transport.proxies import proxy_for

T = TypeVar("T")

_NOT_SENT = (
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,  # of a tunnel, before anything went through it
)


class AiohttpAdapter:
    """The connections of a client, opened when it is entered, or at the first request.

    They hold no task and no scope open between requests.
    """

    def __init__(self, config: Config, wire: Wire) -> None:
        self._config = config
        self._wire = wire
        self._tls = True if config.ca_file is None else _trusting(config.ca_file)
        self._proxy = proxy_for(config.base_url) if config.trust_env else None
        self._http: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> aiohttp.ClientSession:
        """Be ready to send.

        Raises ConfigurationError on another event loop than that of the first call.
        """
        loop = asyncio.get_running_loop()
        if self._http is None:
            self._loop = loop
            self._http = aiohttp.ClientSession(
                # The budget lets no more requests go than there are connections: waiting for one
                # is never counted as time spent connecting.
                connector=aiohttp.TCPConnector(limit=self._config.max_connections, ssl=self._tls),
                response_class=_Response,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=DEFAULT_HEADERS,
                middlewares=(self._send_once,),
                # What is decompressed has to stay within a bound, too.
                auto_decompress=False,
            )
        if self._loop is not loop:
            raise ConfigurationError(
                "this NeonClient belongs to another event loop: make one for each asyncio.run(), "
                "or have the fixture and the tests that share it run on one loop"
            )
        return self._http

    async def exchange(self, request: Request[T], request_id: str, within: float) -> Response:
        """What is answered within at most ``within`` seconds. Raises TransportError."""
        patience = _Patience(self._config.timeout, within)
        try:
            async with (
                patience.scope,
                self.open().request(
                    request.method,
                    URL(self._wire.url(request), encoded=True),
                    # As a payload, a body that holds a password shows in no frame of aiohttp's.
                    data=None if request.body is None else aiohttp.BytesPayload(request.body),
                    headers=self._wire.headers(request, request_id),
                    allow_redirects=False,
                    timeout=_connect_within(patience.seconds_to_connect),
                ) as response,
            ):
                return await self._read(response, patience)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failure, cause = _failure(error, request, request_id, patience), _presentable(error)
        raise failure from cause

    async def aclose(self) -> None:
        """Close every connection."""
        if self._http is not None:
            await self._http.close()

    async def _read(self, response: ClientResponse, patience: "_Patience") -> Response:
        """The answer; of a body that is larger than allowed, a little more than that."""
        body = _Body()
        while not response.content.at_eof():
            if not response.content.is_eof():
                patience.renew()
            body.add(await response.content.readany())
            if body.size > self._config.max_response_bytes:
                response.close()
                break
        return Response(response.status, response.headers, body.joined())

    async def _send_once(
        self, request: ClientRequest, handler: ClientHandlerType
    ) -> ClientResponse:
        """Send a request with what it is authorized by, and no second time.

        aiohttp would send a GET, PUT or DELETE again when a kept-alive connection breaks. A DELETE
        may have been carried out: whether to try again is the retry policy's to say.
        """
        # Here and not among the session's headers, the key shows in no frame and no repr.
        request.headers["Authorization"] = self._wire.authorization()
        if self._proxy is not None:
            authorization = self._proxy.authorization
            headers = {"Proxy-Authorization": authorization.reveal()} if authorization else None
            request.update_proxy(self._proxy.url, None, headers)
        try:
            return await handler(request)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            raise _BrokenConnectionError(_reason(error)) from error


class _Patience:
    """What bounds a request: one timer for its silences and its whole.

    aiohttp would set three, which cost a small request a twentieth of its time.
    """

    def __init__(self, bounds: Timeout, within: float) -> None:
        self._bounds = bounds
        self._within = within
        now = _now()
        self._ends = now + within
        self._has_begun = False
        self.scope = asyncio.timeout_at(min(now + bounds.read, self._ends))

    def renew(self) -> None:
        """The answer has begun: the next silence may begin."""
        self._has_begun = True
        self.scope.reschedule(min(_now() + self._bounds.read, self._ends))

    @property
    def seconds_to_connect(self) -> float:
        """What name lookup and connecting get.

        They end before all else does, so that a request that got no further is known to be unsent.
        """
        return min(self._bounds.connect, 0.9 * min(self._bounds.read, self._within))

    @property
    def reason(self) -> str:
        """Why it has ended."""
        if self.scope.when() == self._ends:
            return f"no whole answer within {self._within:g} s"
        if self._has_begun:
            return f"no byte of the answer for {self._bounds.read:g} s"
        return f"no answer within {self._bounds.read:g} s"


@lru_cache
def _connect_within(seconds: float) -> aiohttp.ClientTimeout:
    # Without the threshold, longer ones are rounded up to whole seconds.
    return aiohttp.ClientTimeout(connect=seconds, ceil_threshold=math.inf)


def _now() -> float:
    return asyncio.get_running_loop().time()


class _Body:
    """As much of a body as has come. No local bytes, so that no traceback shows them."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self.size += len(part)

    def joined(self) -> bytes:
        return b"".join(self._parts)


class _Response(ClientResponse):
    """One whose repr, which tracebacks show, is without its headers: they may quote a secret."""

    def __repr__(self) -> str:
        return f"<answer {self.status}>"


def _trusting(ca_file: str) -> ssl.SSLContext:
    try:
        if not ca_file:  # for which the authorities of the system would be trusted
            raise FileNotFoundError("no file is named")
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"ca_file is {ca_file!r}: it cannot be read as certificates in PEM form: {error}"
        ) from error


def _failure(
    error: Exception, request: Request[T], request_id: str, patience: _Patience
) -> NeonError:
    kind: type[TransportError]
    match error:
        case aiohttp.ConnectionTimeoutError():
            kind, reason = (
                RequestTimeoutError,
                f"no connection within {patience.seconds_to_connect:g} s",
            )
        case TimeoutError():
            kind, reason = RequestTimeoutError, patience.reason
        case aiohttp.ClientConnectorError():
            kind, reason = ConnectionFailedError, _why_unconnected(error)
        case aiohttp.ClientHttpProxyError():
            kind, reason = ConnectionFailedError, f"the proxy refused to connect: {error.status}"
        case aiohttp.ClientResponseError():
            # Its text quotes the answer, which may hold anything.
            kind, reason = ConnectionLostError, "the answer was not HTTP"
        case _:
            kind, reason = ConnectionLostError, f"the connection broke: {_reason(error)}"
    return kind(
        reason,
        method=request.method,
        path=request.path,
        request_id=request_id,
        maybe_delivered=not isinstance(error, _NOT_SENT),
    )


def _why_unconnected(error: aiohttp.ClientConnectorError) -> str:
    proxy = "the proxy " if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
    cause = error.os_error.strerror or _reason(error.os_error)
    hint = ""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        hint = " (an authority of your own goes into ca_file)"
    return f"no connection to {proxy}{error.host}:{error.port}: {cause}{hint}"


def _presentable(error: Exception) -> Exception | None:
    """``error`` as a cause to show: without frames, which hold parts of the answer."""
    if isinstance(error, aiohttp.ClientResponseError):
        return None
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class _BrokenConnectionError(aiohttp.ClientError):
    """A broken connection, by a name for which aiohttp does not send again."""


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
