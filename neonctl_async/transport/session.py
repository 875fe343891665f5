"""The one module that touches aiohttp: sends a request, hands back a Struct or our error."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiohttp
import anyio
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
from yarl import URL

from neonctl_async.config import Config
from neonctl_async.errors import (
    ClientClosedError,
    ConfigurationError,
    ConnectionFailedError,
    ConnectionLostError,
    NeonError,
    RateLimitedError,
    RequestTimeoutError,
    TransportError,
)
from neonctl_async.transport.budget import Budget
from neonctl_async.transport.protocol import Answer, Request, Wire
from neonctl_async.transport.retry import ProjectLock, send_with_retries

T = TypeVar("T")


class Session:
    """The connections of a client, opened at the first request.

    It holds no task and no scope open between calls, so it may be opened in one task and closed
    in another.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._wire = Wire(config.base_url, config.api_key)
        self._budget = Budget(config.budget, config.max_connections)
        self._http: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: set[anyio.CancelScope] = set()
        self._closed = False
        self._requests_sent = 0

    @property
    def requests_sent(self) -> int:
        """The HTTP requests sent so far, further tries included."""
        return self._requests_sent

    async def send(
        self, request: Request[T], lock_of_project: Callable[[], ProjectLock] | None = None
    ) -> T:
        """The answer to ``request``, sent again when it fails in passing.

        ``lock_of_project`` gives what a 423 is waited out with. Raises the errors of
        :mod:`neonctl_async.errors`.
        """
        return await self._while_open(
            lambda: send_with_retries(
                lambda: self._send(request, self._config.timeout.total),
                request.method,
                self._config.retry,
                lock_of_project,
            )
        )

    async def turn_of_poll(self) -> None:
        """Wait until the budget has room for one more poll."""
        await self._budget.turn_of_poll()

    async def poll(self, request: Request[T], total: float) -> T:
        """The answer to ``request``, sent exactly once, within at most ``total`` seconds.

        Requests that are no polls go first.
        """
        total = min(total, self._config.timeout.total)
        return await self._while_open(lambda: self._send(request, total, is_poll=True))

    async def aclose(self) -> None:
        """Close every connection. Calls under way end with ClientClosedError."""
        self._closed = True
        for scope in self._calls:
            scope.cancel()
        if self._http is not None:
            await self._http.close()

    async def _while_open(self, call: Callable[[], Awaitable[T]]) -> T:
        """What ``call`` returns, unless the client is closed before, whatever it waits for."""
        if self._closed:
            raise _closed()
        with anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                return await call()
            finally:
                self._calls.discard(scope)
        raise _closed()

    async def _send(self, request: Request[T], total: float, *, is_poll: bool = False) -> T:
        http = self._open()
        await self._budget.acquire(request.route, is_poll=is_poll)
        try:
            request_id = uuid.uuid4().hex
            self._requests_sent += 1
            answer = await self._exchange(http, request, request_id, self._timeout(total))
        finally:
            self._budget.release(request.route)
        try:
            return self._wire.read(request, request_id, answer)
        except RateLimitedError as error:
            if error.retry_after:
                self._budget.hold(min(error.retry_after, self._config.retry.deadline))
            raise

    async def _exchange(
        self,
        http: aiohttp.ClientSession,
        request: Request[T],
        request_id: str,
        timeout: aiohttp.ClientTimeout,
    ) -> Answer:
        try:
            async with http.request(
                request.method,
                URL(self._wire.url(request), encoded=True),
                data=request.body,
                headers=self._wire.headers(request, request_id),
                allow_redirects=False,
                timeout=timeout,
            ) as response:
                return Answer(response.status, response.headers, await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failure, cause = _failure(error, request, request_id, timeout), _presentable(error)
        raise failure from cause

    def _open(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._http is None:
            self._loop = loop
            self._http = aiohttp.ClientSession(
                # The budget lets no more requests go than there are connections: waiting for one
                # is never counted as time spent connecting.
                connector=aiohttp.TCPConnector(limit=self._config.max_connections),
                cookie_jar=aiohttp.DummyCookieJar(),
                middlewares=(self._authorize, _send_exactly_once),
            )
        if self._loop is not loop:
            raise ConfigurationError(
                "this NeonClient belongs to another event loop: make one for each asyncio.run()"
            )
        return self._http

    async def _authorize(
        self, request: ClientRequest, handler: ClientHandlerType
    ) -> ClientResponse:
        # Here and not among the session's headers, the key shows in no frame and no repr.
        request.headers["Authorization"] = self._wire.authorization()
        return await handler(request)

    def _timeout(self, total: float) -> aiohttp.ClientTimeout:
        # Name lookup and connecting end before the total does, so that a request that never got
        # so far is known to be unsent.
        return aiohttp.ClientTimeout(
            total=total, connect=min(self._config.timeout.connect, 0.9 * total)
        )


def _failure(
    error: Exception, request: Request[T], request_id: str, timeout: aiohttp.ClientTimeout
) -> NeonError:
    kind: type[TransportError]
    match error:
        case aiohttp.ConnectionTimeoutError():
            kind, reason = RequestTimeoutError, f"no connection within {timeout.connect:g} s"
        case TimeoutError():
            kind, reason = RequestTimeoutError, f"no whole answer within {timeout.total:g} s"
        case aiohttp.ClientConnectorError():
            cause = error.os_error.strerror or _reason(error.os_error)
            kind, reason = ConnectionFailedError, f"no connection to {error.host}: {cause}"
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
        maybe_delivered=not isinstance(
            error, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError
        ),
    )


def _presentable(error: Exception) -> Exception | None:
    """``error`` as a cause to show: without frames, which hold parts of the answer."""
    if isinstance(error, aiohttp.ClientResponseError):
        return None
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class _BrokenConnectionError(aiohttp.ClientError):
    """A broken connection, by a name for which aiohttp does not send again."""


async def _send_exactly_once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Keep aiohttp from sending a GET, PUT or DELETE again when a kept-alive connection breaks.

    A DELETE may have been carried out. Whether to try again is the retry policy's to say.
    """
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _BrokenConnectionError(_reason(error)) from error


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _closed() -> ClientClosedError:
    return ClientClosedError("the client is closed: make a new NeonClient")
