"""Calls: limited by the rate budget, retried by the policy, aborted when the client closes."""

import asyncio
import itertools
import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Self, TypeVar

import anyio

from neonctl_async.clock import utc_now
from neonctl_async.config import Config
from neonctl_async.errors import ClientClosedError, NeonError, RateLimitedError, RequestTimeoutError
from neonctl_async.hooks import RequestSent, ResponseReceived
from neonctl_async.transport.aiohttp_adapter import AiohttpAdapter
from neonctl_async.transport.budget import Budget, Slot
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.protocol import Request, Response, Wire
from neonctl_async.transport.retry import MIN_ATTEMPT_SECONDS, ProjectLock, Retries, may_retry
from neonctl_async.transport.server_clock import ServerClock
from neonctl_async.transport.shared.opening import open_account

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class _Call:
    """One call, which is in the set ``calls`` while it runs.

    Closing the client aborts it with ClientClosedError, at a third of the cost of an asyncio
    timeout. Cancellation by others passes through.
    """

    __slots__ = ("_calls", "_cancelling", "_is_aborted", "_task", "is_in_flight")

    def __init__(self, calls: "set[_Call]") -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._calls = calls
        self._is_aborted = False
        self.is_in_flight = False
        """True while a request was or may have been sent and has no response."""

    def __enter__(self) -> Self:
        self._calls.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._calls.discard(self)
        if not self._is_aborted:
            return
        is_cancelled_by_others = self._task.uncancel() > self._cancelling
        if kind is asyncio.CancelledError and not is_cancelled_by_others:
            raise ClientClosedError(_CLOSED, maybe_delivered=self.is_in_flight) from None

    def abort(self) -> None:
        """Make the call raise ClientClosedError now."""
        self._is_aborted = True
        self._task.cancel()


class Session:
    """Sends requests and returns Structs.

    It keeps no task and no cancel scope open between calls, so you can open it in one task and
    close it in another.
    """

    def __init__(self, config: Config, dispatcher: HookDispatcher) -> None:
        self._config = config
        self._dispatcher = dispatcher
        self._wire = Wire(config.base_url, config.api_key, config.max_response_bytes)
        self._adapter = AiohttpAdapter(config, self._wire)
        self._budget = Budget(config.budget, config.max_connections, open_account(config))
        self._server_clock = ServerClock()
        self._calls: set[_Call] = set()
        self._is_closed = False
        self._requests_sent = 0
        self._request_ids = _unique_ids()

    @property
    def requests_sent(self) -> int:
        """The number of HTTP requests sent so far, including retries."""
        return self._requests_sent

    @property
    def requests_last_minute(self) -> int:
        """The number of requests that count against the limit per minute now."""
        return self._budget.requests_last_minute()

    def server_now(self) -> datetime:
        """Return the time of day on the server, as its newest response shows it."""
        return self._server_clock.utc_now(_now(), utc_now())

    def open(self) -> None:
        """Bind to the running event loop. Raises ConfigurationError if bound to another one."""
        self._adapter.open()

    async def send(
        self, request: Request[T], project_lock: Callable[[], ProjectLock] | None = None
    ) -> T:
        """Send ``request``, with retries after transient failures, and return its result.

        After a 423, ``project_lock`` returns the lock to wait for. Raises the errors of
        :mod:`neonctl_async.errors`.
        """
        with self._new_call() as call:
            self._adapter.open()
            slot = await self._budget.acquire(request.route)
            deadline = _now() + self._config.retry.deadline
            try:
                return await self._attempt(request, call, slot, self._config.retry.deadline)
            except NeonError as error:
                if not may_retry(error, request.method) or self._config.retry.attempts == 1:
                    raise
                failure = error
            retries = Retries(
                partial(self._attempt_again, request, call, deadline),
                failure,
                request.method,
                self._config.retry,
                deadline=deadline,
                notify=self._dispatcher.retry,
            )
            return await retries.run(project_lock)

    @property
    def budget(self) -> Budget:
        """The rate budget of all requests."""
        return self._budget

    async def poll(self, request: Request[T], timeout: float, slot: Slot | None = None) -> T:
        """Send ``request`` exactly once and return its result, within ``timeout`` seconds.

        Without a ``slot`` of its route, wait for one. Calls go before polls.
        """
        with self._new_call() as call:
            self._adapter.open()
            if slot is not None and slot.route != request.route:
                slot.cancel()
                slot = None
            slot = slot or await self._budget.acquire(request.route, is_poll=True)
            return await self._attempt(request, call, slot, timeout, is_poll=True)

    async def aclose(self) -> None:
        """Close every connection. Running calls raise ClientClosedError."""
        self._is_closed = True
        while self._calls:
            self._calls.pop().abort()
        try:
            await self._adapter.aclose()
        finally:  # after the aborted calls have released their slots
            await self._budget.aclose()

    def _new_call(self) -> _Call:
        if self._is_closed:
            raise ClientClosedError(_CLOSED)
        return _Call(self._calls)

    async def _attempt(
        self,
        request: Request[T],
        call: _Call,
        slot: Slot,
        seconds: float,
        *,
        is_poll: bool = False,
    ) -> T:
        """Send a request once, within ``seconds`` and the total timeout. Release its slot."""
        request_id = next(self._request_ids)
        timeout = min(self._config.timeout.total, seconds)
        try:
            if self._is_closed:
                # The slot became free just before the cancellation by aclose() arrived.
                raise ClientClosedError(_CLOSED)
            self._requests_sent += 1
            call.is_in_flight = True
            response = await self._exchange(request, request_id, timeout, is_poll=is_poll)
            call.is_in_flight = False
            self._server_clock.note(response.headers.get("Date"), _now())
        except NeonError:
            call.is_in_flight = False
            raise
        finally:
            slot.release()
        try:
            return self._wire.read(request, request_id, response)
        except RateLimitedError as error:
            self._budget.hold_back(error.retry_after)
            raise

    async def _attempt_again(
        self, request: Request[T], call: _Call, deadline: float, failure: NeonError
    ) -> T:
        """Send a request again after ``failure``. Only a first attempt waits without a limit."""
        slot: Slot | None = None
        with anyio.CancelScope(deadline=deadline - MIN_ATTEMPT_SECONDS):
            slot = await self._budget.acquire(request.route)
        if slot is None:
            raise failure if isinstance(failure, RateLimitedError) else self._no_slot(request)
        return await self._attempt(request, call, slot, max(deadline - _now(), MIN_ATTEMPT_SECONDS))

    def _no_slot(self, request: Request[T]) -> RequestTimeoutError:
        return RequestTimeoutError(
            "the rate budget had no free slot before the deadline of the call",
            method=request.method,
            path=request.path,
            request_id=next(self._request_ids),
            maybe_delivered=False,
        )

    def _exchange(
        self, request: Request[T], request_id: str, timeout: float, *, is_poll: bool
    ) -> Awaitable[Response]:
        """Send a request and return its response. Call the hooks and the logger."""
        exchange = self._adapter.exchange(request, request_id, timeout)
        if not (self._dispatcher.has_request_hooks or _logger.isEnabledFor(logging.DEBUG)):
            return exchange
        sent = RequestSent(
            id=request_id,
            method=request.method,
            url=self._wire.url_without_query(request),
            route=request.route,
            is_poll=is_poll,
        )
        return self._observe(exchange, sent)

    async def _observe(self, exchange: Awaitable[Response], sent: RequestSent) -> Response:
        started = _now()
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
            event = ResponseReceived(
                request=sent, status=status, error=failure, seconds=_now() - started
            )
            _log(event)
            self._dispatcher.response(event)
        return response


def _unique_ids() -> Iterator[str]:
    """Yield request ids: a random prefix and a counter, which is faster than random ids.

    The prefix is created with the first id, so forked processes have different prefixes.
    """
    prefix = os.urandom(12).hex()
    for number in itertools.count():
        yield f"{prefix}{number:08x}"


def _now() -> float:
    return asyncio.get_running_loop().time()


_CLOSED = "the client is closed: create a new NeonClient"


def _log(response: ResponseReceived) -> None:
    if not _logger.isEnabledFor(logging.DEBUG):
        return
    request = response.request
    outcome = response.status or "cancelled"
    text = response.error or f"{request.method} {request.url}: {outcome} (request {request.id})"
    _logger.debug("%s, after %.3f s", text, response.seconds)
