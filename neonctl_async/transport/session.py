"""Calls: held back by the budget, tried again as the policy says, ended when the client closes."""

import asyncio
import logging
import math
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from neonctl_async.config import Config
from neonctl_async.errors import ClientClosedError, NeonError, RateLimitedError, RequestTimeoutError
from neonctl_async.hooks import RequestSent, ResponseReceived
from neonctl_async.transport.budget import Budget
from neonctl_async.transport.connections import Connections
from neonctl_async.transport.listeners import Listeners
from neonctl_async.transport.protocol import Answer, Request, Wire
from neonctl_async.transport.retry import LEAST_TRY, ProjectLock, send_with_retries

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class _Call:
    """One call: what ends it, and how far it has come."""

    __slots__ = ("deadline", "is_under_way", "scope")

    def __init__(self) -> None:
        self.scope = asyncio.timeout(None)
        self.deadline = math.inf
        """When it has to be over, on the loop's clock, once its first request has its place."""
        self.is_under_way = False
        """Whether a request of it was, or may have been, sent and has no answer yet."""


class Session:
    """Sends requests and hands back Structs.

    It holds no task and no scope open between calls, so it may be opened in one task and closed
    in another.
    """

    def __init__(self, config: Config, listeners: Listeners) -> None:
        self._config = config
        self._listeners = listeners
        self._wire = Wire(config.base_url, config.api_key, config.max_response_bytes)
        self._connections = Connections(config, self._wire)
        self._budget = Budget(config.budget, config.max_connections)
        self._calls: set[_Call] = set()
        self._closed = False
        self._requests_sent = 0

    @property
    def requests_sent(self) -> int:
        """The HTTP requests sent so far, further tries included."""
        return self._requests_sent

    @property
    def requests_within_minute(self) -> int:
        """The requests that count against the budget's minute now."""
        return self._budget.within_minute()

    def open(self) -> None:
        """Belong to the running event loop. Raises ConfigurationError if it has another one."""
        self._connections.open()

    async def send(
        self, request: Request[T], lock_of_project: Callable[[], ProjectLock] | None = None
    ) -> T:
        """The answer to ``request``, sent again when it fails in passing.

        ``lock_of_project`` gives what a 423 is waited out with. Raises the errors of
        :mod:`neonctl_async.errors`.
        """
        return await self._while_open(
            lambda call: send_with_retries(
                lambda: self._send(request, self._config.timeout.total, call),
                request.method,
                self._config.retry,
                deadline=lambda: call.deadline,
                tell=self._listeners.retry,
                lock_of_project=lock_of_project,
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
        return await self._while_open(lambda call: self._send(request, total, call, is_poll=True))

    async def aclose(self) -> None:
        """Close every connection. Calls under way end with ClientClosedError."""
        self._closed = True
        for call in self._calls:
            call.scope.reschedule(-math.inf)
        await self._connections.aclose()

    async def _while_open(self, send: Callable[[_Call], Awaitable[T]]) -> T:
        """What ``send`` returns, unless the client is closed before, whatever it waits for."""
        if self._closed:
            raise ClientClosedError(_CLOSED)
        call = _Call()
        try:
            async with call.scope:
                self._calls.add(call)
                try:
                    return await send(call)
                finally:
                    self._calls.discard(call)
        except TimeoutError:
            if not call.scope.expired():
                raise  # a failure that is one, too
        raise ClientClosedError(_CLOSED, maybe_delivered=call.is_under_way)

    async def _send(
        self, request: Request[T], total: float, call: _Call, *, is_poll: bool = False
    ) -> T:
        self._connections.open()
        request_id = os.urandom(16).hex()
        await self._room_for(request, request_id, call, is_poll=is_poll)
        try:
            if self._closed:
                # A place that was free as the client closed: no cancellation has come through yet.
                raise ClientClosedError(_CLOSED)
            now = asyncio.get_running_loop().time()
            if call.deadline == math.inf and not is_poll:
                call.deadline = now + self._config.retry.deadline
            self._requests_sent += 1
            within = min(total, max(call.deadline - now, LEAST_TRY))
            answer = await self._exchange(request, request_id, within, call, is_poll=is_poll)
        finally:
            self._budget.release(request.route)
        try:
            return self._wire.read(request, request_id, answer)
        except RateLimitedError as error:
            if error.retry_after:
                self._budget.hold(min(error.retry_after, self._config.retry.deadline))
            raise

    async def _room_for(
        self, request: Request[T], request_id: str, call: _Call, *, is_poll: bool
    ) -> None:
        """Wait for a place in the budget: the first of a call for as long as it takes."""
        if call.deadline == math.inf:
            await self._budget.acquire(request.route, is_poll=is_poll)
            return
        with anyio.CancelScope(deadline=call.deadline - LEAST_TRY):
            await self._budget.acquire(request.route, is_poll=is_poll)
            return
        raise RequestTimeoutError(
            "the rate budget had no room before the deadline of the call",
            method=request.method,
            path=request.path,
            request_id=request_id,
            maybe_delivered=False,
        )

    async def _exchange(
        self, request: Request[T], request_id: str, within: float, call: _Call, *, is_poll: bool
    ) -> Answer:
        """What is answered, with those who listen told of it."""
        exchange: Awaitable[Answer] = self._connections.exchange(request, request_id, within)
        if self._listeners.hear_of_requests or _logger.isEnabledFor(logging.DEBUG):
            sent = RequestSent(
                id=request_id,
                method=request.method,
                url=self._wire.address(request),
                route=request.route,
                is_poll=is_poll,
            )
            exchange = self._told(exchange, sent)
        call.is_under_way = True
        try:
            answer = await exchange
        except NeonError:
            call.is_under_way = False
            raise
        call.is_under_way = False
        return answer

    async def _told(self, exchange: Awaitable[Answer], sent: RequestSent) -> Answer:
        time = asyncio.get_running_loop().time
        began = time()
        status: int | None = None
        failure: NeonError | None = None
        self._listeners.request(sent)
        try:
            answer = await exchange
            status = answer.status
        except NeonError as error:
            failure = error
            raise
        finally:
            told = ResponseReceived(
                request=sent, status=status, error=failure, seconds=time() - began
            )
            _log(told)
            self._listeners.response(told)
        return answer


_CLOSED = "the client is closed: make a new NeonClient"


def _log(response: ResponseReceived) -> None:
    if not _logger.isEnabledFor(logging.DEBUG):
        return
    request = response.request
    outcome = response.status or "ended by the caller"
    what = response.error or f"{request.method} {request.url}: {outcome} (request {request.id})"
    _logger.debug("%s, after %.3f s", what, response.seconds)
