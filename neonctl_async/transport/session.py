"""Calls: held back by the budget, tried again as the policy says, ended when the client closes."""

import asyncio
import itertools
import logging
import math
import os
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Self, TypeVar

import anyio

from neonctl_async.config import Config
from neonctl_async.errors import ClientClosedError, NeonError, RateLimitedError, RequestTimeoutError
from neonctl_async.hooks import RequestSent, ResponseReceived
from neonctl_async.transport.aiohttp_adapter import AiohttpAdapter
from neonctl_async.transport.budget import Budget
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.protocol import Request, Response, Wire
from neonctl_async.transport.retry import MIN_ATTEMPT_SECONDS, ProjectLock, may_retry, send_again

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class _Call:
    """One call, among ``calls`` while it is entered: how far it has come, and what ends it.

    Closed, it raises ClientClosedError, whatever it was waiting for: as a timeout of asyncio would
    do it, at a third of the cost.
    """

    __slots__ = ("_calls", "_cancelling", "_is_closed", "_task", "deadline", "is_under_way")

    def __init__(self, calls: "set[_Call]") -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._calls = calls
        self._is_closed = False
        self.deadline = math.inf
        """When it has to be over, on the loop's clock, once its first request has its place."""
        self.is_under_way = False
        """Whether a request of it was, or may have been, sent and has no answer yet."""

    def __enter__(self) -> Self:
        self._calls.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._calls.discard(self)
        if not self._is_closed:
            return
        is_cancelled_by_others = self._task.uncancel() > self._cancelling
        if kind is asyncio.CancelledError and not is_cancelled_by_others:
            raise ClientClosedError(_CLOSED, maybe_delivered=self.is_under_way) from None

    def close(self) -> None:
        """End it now."""
        self._is_closed = True
        self._task.cancel()


class Session:
    """Sends requests and hands back Structs.

    It holds no task and no scope open between calls, so it may be opened in one task and closed
    in another.
    """

    def __init__(self, config: Config, dispatcher: HookDispatcher) -> None:
        self._config = config
        self._dispatcher = dispatcher
        self._wire = Wire(config.base_url, config.api_key, config.max_response_bytes)
        self._adapter = AiohttpAdapter(config, self._wire)
        self._budget = Budget(config.budget, config.max_connections)
        self._calls: set[_Call] = set()
        self._closed = False
        self._requests_sent = 0
        self._request_ids = _unique_ids()

    @property
    def requests_sent(self) -> int:
        """The HTTP requests sent so far, further tries included."""
        return self._requests_sent

    @property
    def requests_last_minute(self) -> int:
        """The requests that count against the budget's minute now."""
        return self._budget.requests_last_minute()

    def open(self) -> None:
        """Belong to the running event loop. Raises ConfigurationError if it has another one."""
        self._adapter.open()

    async def send(
        self, request: Request[T], lock_of_project: Callable[[], ProjectLock] | None = None
    ) -> T:
        """The answer to ``request``, sent again when it fails in passing.

        ``lock_of_project`` gives what a 423 is waited out with. Raises the errors of
        :mod:`neonctl_async.errors`.
        """
        total = self._config.timeout.total
        with self._begin() as call:
            try:
                return await self._send(request, total, call)
            except NeonError as error:
                if not may_retry(error, request.method) or self._config.retry.attempts == 1:
                    raise
                failure = error
            return await send_again(
                partial(self._send, request, total, call),
                failure,
                request.method,
                self._config.retry,
                deadline=call.deadline,
                notify=self._dispatcher.retry,
                lock_of_project=lock_of_project,
            )

    async def acquire_poll_slot(self) -> None:
        """Wait until the budget has room for one more poll."""
        await self._budget.acquire_poll_slot()

    async def poll(self, request: Request[T], total: float) -> T:
        """The answer to ``request``, sent exactly once, within at most ``total`` seconds.

        Requests that are no polls go first.
        """
        total = min(total, self._config.timeout.total)
        with self._begin() as call:
            return await self._send(request, total, call, is_poll=True)

    async def aclose(self) -> None:
        """Close every connection. Calls under way end with ClientClosedError."""
        self._closed = True
        while self._calls:
            self._calls.pop().close()
        await self._adapter.aclose()

    def _begin(self) -> _Call:
        if self._closed:
            raise ClientClosedError(_CLOSED)
        return _Call(self._calls)

    async def _send(
        self, request: Request[T], total: float, call: _Call, *, is_poll: bool = False
    ) -> T:
        self._adapter.open()
        request_id = next(self._request_ids)
        if call.deadline == math.inf:
            await self._budget.acquire(request.route, is_poll=is_poll)
        else:
            await self._room_for(request, request_id, call.deadline)
        try:
            if self._closed:
                # A place that was free as the client closed: no cancellation has come through yet.
                raise ClientClosedError(_CLOSED)
            now = asyncio.get_running_loop().time()
            if call.deadline == math.inf and not is_poll:
                call.deadline = now + self._config.retry.deadline
            self._requests_sent += 1
            within = min(total, max(call.deadline - now, MIN_ATTEMPT_SECONDS))
            call.is_under_way = True
            response = await self._exchange(request, request_id, within, is_poll=is_poll)
            call.is_under_way = False
        except NeonError:
            call.is_under_way = False
            raise
        finally:
            self._budget.release(request.route)
        try:
            return self._wire.read(request, request_id, response)
        except RateLimitedError as error:
            if error.retry_after:
                self._budget.hold(min(error.retry_after, self._config.retry.deadline))
            raise

    async def _room_for(self, request: Request[T], request_id: str, deadline: float) -> None:
        """Wait for a place for a further try; the first waits as long as it takes."""
        with anyio.CancelScope(deadline=deadline - MIN_ATTEMPT_SECONDS):
            await self._budget.acquire(request.route)
            return
        raise RequestTimeoutError(
            "the rate budget had no room before the deadline of the call",
            method=request.method,
            path=request.path,
            request_id=request_id,
            maybe_delivered=False,
        )

    def _exchange(
        self, request: Request[T], request_id: str, within: float, *, is_poll: bool
    ) -> Awaitable[Response]:
        """What is answered, with those who listen told of it."""
        exchange = self._adapter.exchange(request, request_id, within)
        if not (self._dispatcher.hear_of_requests or _logger.isEnabledFor(logging.DEBUG)):
            return exchange
        sent = RequestSent(
            id=request_id,
            method=request.method,
            url=self._wire.address(request),
            route=request.route,
            is_poll=is_poll,
        )
        return self._observed(exchange, sent)

    async def _observed(self, exchange: Awaitable[Response], sent: RequestSent) -> Response:
        time = asyncio.get_running_loop().time
        started = time()
        status: int | None = None
        failure: NeonError | None = None
        self._dispatcher.request(sent)
        try:
            response = await exchange
            status = response.status
        except NeonError as error:
            failure = error
            raise
        finally:
            told = ResponseReceived(
                request=sent, status=status, error=failure, seconds=time() - started
            )
            _log(told)
            self._dispatcher.response(told)
        return response


def _unique_ids() -> Iterator[str]:
    """Ids of requests: random digits once, then counted, which spares each a call of the system.

    The digits are drawn at the first request: processes forked from one that has made a client
    share none.
    """
    beginning = os.urandom(12).hex()
    for number in itertools.count():
        yield f"{beginning}{number:08x}"


_CLOSED = "the client is closed: make a new NeonClient"


def _log(response: ResponseReceived) -> None:
    if not _logger.isEnabledFor(logging.DEBUG):
        return
    request = response.request
    outcome = response.status or "ended by the caller"
    what = response.error or f"{request.method} {request.url}: {outcome} (request {request.id})"
    _logger.debug("%s, after %.3f s", what, response.seconds)
