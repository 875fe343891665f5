"""Retries of calls after transient failures."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import anyio
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential
from tenacity.retry import retry_base
from tenacity.stop import stop_base

from neonctl_async.clock import loop_time
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
"""The minimum time for one attempt: a connection, TLS and the response, with round trips of 30 ms.
With less, its outcome would probably stay unknown."""


def may_retry(error: BaseException, *, is_read: bool) -> bool:
    """Return whether a retry may succeed, without the risk of executing the request twice.

    For a request that only reads, there is no such risk. Statuses that a retry cannot change, such
    as 401, are never retried.
    """
    match error:
        case APIError() if error.status not in TRANSIENT_STATUSES:
            return False
        case APIError() | TransportError():
            return is_read or not error.maybe_delivered
        case _:
            return False


def counts_as_attempt(error: NeonError, policy: RetryPolicy, *, is_address_known: bool) -> bool:
    """Return whether a failure uses up one of the policy's attempts.

    If nothing was executed, only the deadline limits the retries. A failed connection counts until
    a request has succeeded, because the address may be wrong.
    """
    # Without a backoff, a client would send requests as fast as it can until the deadline.
    if not policy.initial or not policy.maximum:
        return True
    if isinstance(error, ConnectionFailedError):
        return not is_address_known
    return not isinstance(error, APIError | TransportError) or error.maybe_delivered


def retry_after(error: NeonError) -> float:
    """Return the minimum delay that the server has requested, in seconds."""
    return error.retry_after or 0.0 if isinstance(error, APIError) else 0.0


class ProjectLock:
    """The lock of a project whose calls get a 423.

    ``wait_for_operations`` waits until the running operations of the project finish, and returns
    their number, or None if reading them fails. ``report`` logs that the project is locked, once
    for all calls that were rejected.
    """

    def __init__(
        self, wait_for_operations: Callable[[], Awaitable[int | None]], report: Callable[[], None]
    ) -> None:
        self.wait_for_operations: Callable[[], Awaitable[int | None]] = wait_for_operations
        self.report: Callable[[], None] = report
        self.retry_turn: asyncio.Lock = asyncio.Lock()
        """Held by the call that is being retried, so that calls are retried one at a time."""


class Retries:
    """The retries of one call, whose first attempt has failed.

    ``deadline`` is on the clock of the event loop. ``notify`` is called before each retry.
    ``project_lock`` returns the lock to wait for after a 423. The next attempts then start, one
    call at a time, when the project's running operations finish.
    """

    def __init__(
        self,
        policy: RetryPolicy,
        deadline: float,
        notify: Callable[[RetryPlanned], None],
        project_lock: Callable[[], ProjectLock] | None,
    ) -> None:
        self._policy = policy
        self._deadline = deadline
        self._notify = notify
        self._project_lock = project_lock
        self._held_lock: ProjectLock | None = None
        self._was_free = False
        self._failure: NeonError

    async def run(
        self,
        send: Callable[[NeonError], Awaitable[T]],
        failure: NeonError,
        *,
        is_read: bool,
        is_address_known: bool,
    ) -> T:
        """Return the result of the call. ``failure`` is the failure of the first attempt.

        ``send`` makes one attempt, and gets the failure of the previous attempt. Raises the latest
        failure if it is not transient, or if the policy or the deadline does not allow another
        attempt.
        """
        attempts = _Continued(
            failure,
            retry=retry_if_exception(partial(may_retry, is_read=is_read)),
            stop=_LastAttempt(self._policy, is_address_known=is_address_known)
            | _TooLate(self._deadline),
            wait=_backoff_of(self._policy),
            before_sleep=self._prepare,
        )
        try:
            async for attempt in attempts:
                with attempt:
                    return await send(self._failure)
        except NeonError as error:
            raise error.with_traceback(None) from error.__cause__  # no frames of tenacity
        finally:
            if self._held_lock is not None:
                self._held_lock.retry_turn.release()
        raise AssertionError("tenacity ends its loop with a result or an error")

    async def _prepare(self, state: RetryCallState) -> None:
        """Report the next retry. After a 423, wait for the project's lock."""
        self._failure = failure = _failure(state)
        failed_at = loop_time()
        lock = self._find_lock(failure)
        retry = RetryPlanned(
            error=failure, attempt=state.attempt_number, delay=state.upcoming_sleep
        )
        is_logged_once = lock is not None or isinstance(failure, RateLimitedError)
        level = logging.DEBUG if is_logged_once else logging.WARNING
        _logger.log(level, "retrying in %.3g s, after %s", retry.delay, retry.error)
        self._notify(retry)
        if lock is not None:
            seconds = retry_after(failure) if await self._wait_for_lock(lock) else retry.delay
            state.upcoming_sleep = max(failed_at + seconds - loop_time(), 0.0)

    def _find_lock(self, failure: NeonError) -> ProjectLock | None:
        """Return the lock that rejected a call, or None. Log that the project is locked."""
        if not isinstance(failure, LockedError) or self._project_lock is None:
            return None
        if self._held_lock is not None:
            return self._held_lock
        lock = self._project_lock()
        lock.report()
        return lock

    async def _wait_for_lock(self, lock: ProjectLock) -> bool:
        """Wait for a turn and the running operations. Return whether the lock is probably gone."""
        if self._held_lock is None:
            with anyio.move_on_after(self._deadline - loop_time()):
                await lock.retry_turn.acquire()
                self._held_lock = lock
        # Not every running operation holds the lock, so keep some time for attempts.
        with anyio.move_on_after((self._deadline - loop_time()) / 2):
            running = await lock.wait_for_operations()
            # They may have finished since the 423. If that repeats, the lock has another cause.
            was_free, self._was_free = self._was_free, running == 0
            return running is not None and not (was_free and self._was_free)
        return False


class _Continued(AsyncRetrying):
    """The attempts after a first attempt that was made without tenacity and failed.

    tenacity costs time even if nothing fails, so only calls that fail use it.
    """

    def __init__(
        self,
        failure: NeonError,
        retry: retry_base,
        stop: stop_base,
        wait: Callable[[RetryCallState], float],
        before_sleep: Callable[[RetryCallState], Awaitable[None]],
    ) -> None:
        super().__init__(asyncio.sleep, stop, wait, retry, before_sleep=before_sleep, reraise=True)
        self._first_failure: NeonError | None = failure

    async def iter(self, retry_state: RetryCallState) -> object:
        """Return what to do next. The first call returns what to do after the first failure."""
        failure, self._first_failure = self._first_failure, None
        if failure is not None:
            retry_state.set_exception((type(failure), failure, failure.__traceback__))
        return await super().iter(retry_state)


class _LastAttempt(stop_base):
    """Stops after the last attempt that the policy allows."""

    def __init__(self, policy: RetryPolicy, *, is_address_known: bool) -> None:
        self._policy = policy
        self._is_address_known = is_address_known
        self._attempts = 0

    def __call__(self, retry_state: RetryCallState) -> bool:
        self._attempts += counts_as_attempt(
            _failure(retry_state), self._policy, is_address_known=self._is_address_known
        )
        return self._attempts >= self._policy.attempts


class _TooLate(stop_base):
    """Stops if the next attempt would start too late."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def __call__(self, retry_state: RetryCallState) -> bool:
        return loop_time() + retry_state.upcoming_sleep >= self._deadline - MIN_ATTEMPT_SECONDS


def _backoff_of(policy: RetryPolicy) -> Callable[[RetryCallState], float]:
    """Return a function that returns the backoff, or more if ``Retry-After`` requires it."""
    backoff = wait_random_exponential(multiplier=policy.initial, max=policy.maximum)

    def wait(state: RetryCallState) -> float:
        return max(backoff(state), retry_after(_failure(state)))

    return wait


def _failure(state: RetryCallState) -> NeonError:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, NeonError)
    return error
