"""Calls: limited by the rate budget, retried by the policy, aborted when the client closes."""

import asyncio
import itertools
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import TypeAlias, TypeVar

import anyio

from neonctl_async.clock import utc_now
from neonctl_async.config import Config, RetryPolicy
from neonctl_async.errors import AuthenticationError, NeonError, RateLimitedError
from neonctl_async.hooks import RequestSent, ResponseReceived
from neonctl_async.transport.aiohttp_adapter import AiohttpAdapter, OpenResponse
from neonctl_async.transport.api_key import ApiKey
from neonctl_async.transport.budget import Budget, Slot
from neonctl_async.transport.calls import Call, Calls
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.download import Download
from neonctl_async.transport.protocol import HOLDS_READS, Request, Response, ServerClock, Wire
from neonctl_async.transport.retry import (
    MIN_ATTEMPT_SECONDS,
    ProjectLock,
    Retries,
    may_retry,
)
from neonctl_async.transport.shared.opening import open_account

T = TypeVar("T")

_Reader: TypeAlias = Callable[[Request[T], str, Response], T]
"""Returns the result of a request, given its id and its response, or raises an error."""

_logger = logging.getLogger(__name__)


class Session:
    """Sends requests and returns Structs.

    It does not keep a task or a cancel scope open between calls, so you can open it in one task and
    close it in another.
    """

    def __init__(self, config: Config, dispatcher: HookDispatcher) -> None:
        self._total_timeout = config.timeout.total
        self.retry: RetryPolicy = config.retry
        self._dispatcher = dispatcher
        self._api_key = ApiKey(config.api_key, config.key_function, config.timeout.total)
        self._wire = Wire(config.base_url, self._api_key.known, config.max_response_bytes)
        self._adapter = AiohttpAdapter(config, self._wire, self._api_key)
        self._budget = Budget(config.budget, config.max_connections, open_account(config))
        self._calls = Calls(config.timeout.read)
        self._server_clock = ServerClock()
        self._requests_sent = 0
        self._request_ids = _unique_ids()
        self.holds_reads: bool = False
        """True if the server holds reads of new operations briefly, until they have settled."""
        # Downloads do not use the budget's connections, so a program can send requests while it
        # reads.
        self._downloads = asyncio.Semaphore(config.max_connections)

    @property
    def requests_sent(self) -> int:
        """The number of HTTP requests sent so far, including retries."""
        return self._requests_sent

    @property
    def requests_last_minute(self) -> int:
        """The number of requests that currently count against the limit per minute."""
        return self._budget.requests_last_minute()

    @property
    def held_seconds(self) -> float:
        """How many more seconds waiting requests are held back because of the rate limits."""
        return self._budget.held_seconds()

    def server_now(self) -> datetime:
        """Return the time of day on the server, according to its latest response."""
        return self._server_clock.utc_now(self._calls.time(), utc_now())

    def open(self) -> None:
        """Bind to the running event loop. Raises ConfigurationError if bound to another one.

        Raises ClientClosedError if the client has been closed.
        """
        self._calls.check_open()
        self._adapter.open()

    def send(
        self, request: Request[T], project_lock: Callable[[], ProjectLock] | None = None
    ) -> Coroutine[None, None, T]:
        """Send ``request``, with retries after transient failures, and return its result.

        After a 423, ``project_lock`` returns the lock to wait for. Raises the errors of
        :mod:`neonctl_async.errors`.
        """
        return self._send(request, self._wire.read, project_lock)

    @asynccontextmanager
    async def download(self, request: Request[Download]) -> AsyncGenerator[Download]:
        """Send ``request``, with retries, and yield its response as a stream.

        Raises the errors of :mod:`neonctl_async.errors`. At most ``max_connections`` streams are
        open at the same time.
        """
        with Call(self._calls):
            await self._downloads.acquire()
        try:
            download = await self._send(request, self._open_download)
            try:
                yield download
            finally:
                download.close()
        finally:
            self._downloads.release()

    async def _send(
        self,
        request: Request[T],
        read: _Reader[T],
        project_lock: Callable[[], ProjectLock] | None = None,
    ) -> T:
        with Call(self._calls) as call:
            self._adapter.open()
            slot = await self._budget.acquire(request.route)
            try:
                return await self._attempt(request, read, call, slot, self.retry.deadline)
            except NeonError as error:
                is_final = self.retry.attempts == 1
                if is_final or not may_retry(error, is_read=request.is_read):
                    raise
                failure = error
            deadline = call.sent_at + self.retry.deadline
            retries = Retries(self.retry, deadline, self._dispatcher.retry, project_lock)
            return await retries.run(
                partial(self._attempt_again, request, read, call, deadline),
                failure,
                is_read=request.is_read,
                is_address_known=self._wire.is_address_right,
            )

    @property
    def budget(self) -> Budget:
        """The rate budget of all requests."""
        return self._budget

    async def poll(self, request: Request[T], timeout: float, slot: Slot | None = None) -> T:
        """Send ``request`` without retries and return its result, within ``timeout`` seconds.

        ``slot`` is released at the end. Without a slot, wait for one. Calls are served before
        polls.
        """
        with Call(self._calls) as call:
            self._adapter.open()
            slot = slot or await self._budget.acquire(request.route, is_poll=True)
            return await self._attempt(request, self._wire.read, call, slot, timeout, is_poll=True)

    async def aclose(self) -> None:
        """Close every connection. Running calls raise ClientClosedError."""
        self._calls.close()
        try:
            await self._adapter.aclose()
        finally:  # after the aborted calls have released their slots
            await self._budget.aclose()

    async def _attempt(
        self,
        request: Request[T],
        read: _Reader[T],
        call: Call,
        slot: Slot,
        seconds: float,
        *,
        is_poll: bool = False,
        is_key_new: bool = False,
    ) -> T:
        """Send a request once, within ``seconds``, and return its result. Release its slot.

        If the API key is refused (401), call its function, and send again if the key has changed.
        """
        request_id = next(self._request_ids)
        try:
            key = self._api_key.answer if self._api_key.known else await self._api_key.first()
            call.start_request(min(self._total_timeout, seconds))
            self._requests_sent += 1
            keep_open = request.response_type is Download
            exchange = self._adapter.exchange(request, request_id, call, keep_open=keep_open)
            if self._dispatcher.has_request_hooks or _logger.isEnabledFor(logging.DEBUG):
                exchange = self._observe(exchange, request, request_id, is_poll=is_poll)
            response = await exchange
            self._server_clock.note(response.headers.get("Date"), self._calls.time())
            self.holds_reads = HOLDS_READS in response.headers
        finally:
            call.end_request()
            slot.release()
        try:
            return read(request, request_id, response)
        except RateLimitedError as error:
            self._budget.hold_back(error.retry_after)
            raise
        except AuthenticationError as error:
            failure = error
        if is_key_new:
            raise failure
        newer = await self._api_key.after(key)
        if newer.key == key.key:
            raise failure from newer.failure
        slot = await self._budget.acquire(request.route, is_poll=is_poll)
        seconds = max(call.sent_at + seconds - self._calls.time(), MIN_ATTEMPT_SECONDS)
        return await self._attempt(
            request, read, call, slot, seconds, is_poll=is_poll, is_key_new=True
        )

    def _open_download(
        self, request: Request[Download], request_id: str, response: Response
    ) -> Download:
        """Return a response as a stream. Raises APIError for an error status."""
        self._wire.check(request, request_id, response)
        assert isinstance(response, OpenResponse)  # `keep_open` requests it
        return Download(response.stream, response.headers, self._calls)

    async def _attempt_again(
        self,
        request: Request[T],
        read: _Reader[T],
        call: Call,
        deadline: float,
        failure: NeonError,
    ) -> T:
        """Send a request again after ``failure``, which is raised if no slot becomes free in time.

        Only the first attempt waits for a slot without a time limit.
        """
        slot: Slot | None = None
        if self._calls.time() >= deadline - MIN_ATTEMPT_SECONDS:
            raise failure
        with anyio.CancelScope(deadline=deadline - MIN_ATTEMPT_SECONDS):
            slot = await self._budget.acquire(request.route)
        if slot is None:
            raise failure
        seconds = max(deadline - self._calls.time(), MIN_ATTEMPT_SECONDS)
        return await self._attempt(request, read, call, slot, seconds)

    async def _observe(
        self,
        exchange: Awaitable[Response],
        request: Request[T],
        request_id: str,
        *,
        is_poll: bool,
    ) -> Response:
        """Return the response of an exchange. Call the hooks and the logger."""
        sent = RequestSent(
            id=request_id,
            method=request.method,
            url=self._wire.url_without_query(request),
            route=request.route,
            is_poll=is_poll,
        )
        started = self._calls.time()
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
                request=sent, status=status, error=failure, seconds=self._calls.time() - started
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


def _log(response: ResponseReceived) -> None:
    if not _logger.isEnabledFor(logging.DEBUG):
        return
    request = response.request
    outcome = response.status or "cancelled"
    text = response.error or f"{request.method} {request.url}: {outcome} (request {request.id})"
    _logger.debug("%s, after %.3f s", text, response.seconds)
