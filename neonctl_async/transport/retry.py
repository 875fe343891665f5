"""Retries of calls after transient failures."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

import anyio
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from neonctl_async.config import RetryPolicy
from neonctl_async.errors import (
    APIError,
    ConnectionFailedError,
    LockedError,
    NeonError,
    RateLimitedError,
    TransportError,
)
from neonctl_async.hooks import RetryPlanned

T = TypeVar("T")

_logger = logging.getLogger(__name__)

TRANSIENT_STATUSES = frozenset({408, 423, 429, 500, 502, 503, 504})
"""The statuses of transient failures."""
MIN_ATTEMPT_SECONDS = 0.1
"""The least time for one attempt. With less, its outcome would probably stay unknown."""


def may_retry(error: BaseException, *, is_read: bool) -> bool:
    """Return whether a retry can succeed and cannot execute the request twice.

    A request that only reads may be executed twice. Statuses that a retry cannot change, such as
    401, are never retried.
    """
    match error:
        case APIError() if error.status not in TRANSIENT_STATUSES:
            return False
        case APIError() | TransportError():
            return is_read or not error.maybe_delivered
        case _:
            return False


class ProjectLock(Protocol):
    """The lock of a project, because of which a request was rejected with status 423."""

    retry_slot: asyncio.Lock
    """Held by the call that is being retried, so that calls are retried one at a time."""

    async def settle(self) -> bool:
        """Wait until the running operations finish. Return False if none is running."""
        ...

    def report(self) -> None:
        """Log that the project is locked, once for all calls that were rejected."""
        ...


async def send_again(
    send: Callable[[NeonError], Awaitable[T]], failure: NeonError, pauses: "Pauses"
) -> T:
    """Return the result of a call whose first attempt ended with ``failure``.

    ``send`` makes one attempt. It gets the failure of the attempt before. Raises the newest failure
    if it is not transient, or if the policy or the deadline does not allow another attempt.
    """
    retrying = AsyncRetrying(
        retry=retry_if_exception(partial(may_retry, is_read=pauses.is_read)),
        stop=pauses.are_over,
        wait=pauses.seconds_after,
        before_sleep=pauses.prepare,
        sleep=pauses.sleep,
        reraise=True,
    )
    try:
        async for attempt in retrying:
            with attempt:
                if attempt.retry_state.attempt_number == 1:
                    raise failure  # tenacity costs 18 µs, so each call starts without it
                return await send(pauses.failure)
    except NeonError as error:
        raise error.with_traceback(None) from error.__cause__  # no frames of tenacity
    finally:
        pauses.release_lock()
    raise AssertionError("tenacity ends its loop with a result or an error")


def counts_as_attempt(error: NeonError, *, is_address_known: bool) -> bool:
    """Return whether a failure uses up one of the attempts of the policy.

    Only the deadline limits the failures after which nothing was executed. The address may be wrong
    as long as no connection has succeeded.
    """
    if isinstance(error, ConnectionFailedError):
        return not is_address_known
    return not isinstance(error, APIError | TransportError) or error.maybe_delivered


class Pauses:
    """The pauses between the attempts of one call, and when there is no further attempt.

    ``is_read`` is True for a request that only reads. ``deadline`` is on the clock of the event
    loop. ``notify`` is called before each retry. ``project_lock`` returns the lock to wait for
    after a 423. The next attempt then starts when the running operations of the project finish, one
    call at a time.
    """

    def __init__(
        self,
        policy: RetryPolicy,
        deadline: float,
        notify: Callable[[RetryPlanned], None],
        project_lock: Callable[[], ProjectLock] | None,
        *,
        is_read: bool,
        is_address_known: bool,
    ) -> None:
        self.is_read: bool = is_read
        self.failure: NeonError
        """The newest failure."""
        self._failed_at = 0.0
        self._policy = policy
        self._deadline = deadline
        self._notify = notify
        self._project_lock = project_lock
        self._held_lock: ProjectLock | None = None
        self._is_address_known = is_address_known
        self._attempts = 0
        self._backoff = wait_random_exponential(multiplier=policy.initial, max=policy.maximum)

    def are_over(self, state: RetryCallState) -> bool:
        """Return whether no further attempt is allowed after a failure."""
        error = state.outcome.exception() if state.outcome else None
        assert isinstance(error, NeonError)
        self.failure = error
        self._failed_at = _time()
        # Without a backoff, a client would send requests as fast as it can until the deadline.
        is_counted = counts_as_attempt(error, is_address_known=self._is_address_known)
        self._attempts += is_counted or not self._policy.initial or not self._policy.maximum
        if self._attempts >= self._policy.attempts:
            return True
        next_at = self._failed_at + state.upcoming_sleep
        return next_at >= self._deadline - MIN_ATTEMPT_SECONDS

    def seconds_after(self, state: RetryCallState) -> float:
        """Return the length of the pause: the backoff, or longer if ``Retry-After`` requires it."""
        error = state.outcome.exception() if state.outcome else None
        return max(self._backoff(state), _retry_after(error))

    async def prepare(self, state: RetryCallState) -> None:
        """After a 423, acquire the retry slot of the project. Then report the retry."""
        is_locked = isinstance(self.failure, LockedError)
        if is_locked and self._held_lock is None and self._project_lock is not None:
            lock = self._project_lock()
            lock.report()
            with anyio.move_on_after(self._deadline - _time()):
                await lock.retry_slot.acquire()
                self._held_lock = lock
        retry = RetryPlanned(
            error=self.failure, attempt=state.attempt_number, delay=state.upcoming_sleep
        )
        _logger.log(self._level(), "retrying in %.3g s, after %s", retry.delay, retry.error)
        self._notify(retry)

    async def sleep(self, seconds: float) -> None:
        """Wait for the next attempt."""
        if self._held_lock is not None and isinstance(self.failure, LockedError):
            # Not every running operation holds the lock, so keep some time for attempts.
            with anyio.move_on_after((self._deadline - _time()) / 2):
                if await self._held_lock.settle():
                    seconds = _retry_after(self.failure)
        await asyncio.sleep(self._failed_at + seconds - _time())

    def release_lock(self) -> None:
        """Let the next call of the project retry."""
        if self._held_lock is not None:
            self._held_lock.retry_slot.release()

    def _level(self) -> int:
        """Return DEBUG for a failure that is logged once for many calls, else WARNING."""
        match self.failure:
            case RateLimitedError():
                return logging.DEBUG
            case LockedError() if self._held_lock is not None:
                return logging.DEBUG
            case _:
                return logging.WARNING


def _retry_after(error: BaseException | None) -> float:
    return error.retry_after or 0.0 if isinstance(error, APIError) else 0.0


def _time() -> float:
    return asyncio.get_running_loop().time()
