"""Retries of calls after transient failures."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar

import anyio
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, wait_random_exponential

from neonctl_async.config import RetryPolicy
from neonctl_async.errors import (
    APIError,
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


class _Failed:
    """The result of an attempt that raised a NeonError."""


_FAILED: Final = _Failed()


class _NoTimeLeft(Exception):  # noqa: N818 - it never leaves this module
    """The deadline leaves no time for another attempt."""


class Retries(Generic[T]):
    """All attempts of one call but the first, which had a transient failure.

    ``send`` makes one attempt. It gets the failure of the attempt before. ``is_read`` is True for
    a request that only reads. ``deadline`` is on the clock of the event loop. ``notify`` is called
    before each retry. ``project_lock`` returns the lock to wait for after a 423.
    """

    def __init__(
        self,
        send: Callable[[NeonError], Awaitable[T]],
        first_failure: NeonError,
        policy: RetryPolicy,
        *,
        is_read: bool,
        deadline: float,
        notify: Callable[[RetryPlanned], None],
        project_lock: Callable[[], ProjectLock] | None = None,
    ) -> None:
        self._send = send
        self._newest_failure = first_failure
        self._failed_at = asyncio.get_running_loop().time()
        self._is_replayed = False
        self._rate_limited = 0
        self._is_read = is_read
        self._max_attempts = policy.attempts
        self._deadline = deadline
        self._notify = notify
        self._project_lock = project_lock
        self._held_lock: ProjectLock | None = None
        self._backoff = wait_random_exponential(multiplier=policy.initial, max=policy.maximum)
        self._time = asyncio.get_running_loop().time

    async def run(self) -> T:
        """Return the result of the first successful attempt.

        After a 423, with ``project_lock``, the next attempt starts as soon as the running
        operations of the project finish, one call at a time. Raises the newest failure if it is
        not transient, or if the policy or the deadline does not allow another attempt. Only the
        deadline limits the attempts that end with a 429.
        """
        retrying = AsyncRetrying(
            retry=retry_if_result(self._may_retry),
            wait=lambda state: max(self._backoff(state), _retry_after(self._newest_failure)),
            stop=self._is_exhausted,
            before_sleep=self._prepare,
            sleep=self._pause,
            retry_error_callback=lambda _state: _FAILED,
        )
        try:
            outcome: T | _Failed = await retrying(self._attempt)
        except _NoTimeLeft:
            outcome = _FAILED
        finally:
            if self._held_lock is not None:
                self._held_lock.retry_slot.release()
        if isinstance(outcome, _Failed):
            raise self._newest_failure
        return outcome

    async def _attempt(self) -> T | _Failed:
        # A failure is returned: raised, it would pass through tenacity, whose frames would then
        # fill the traceback. The first attempt runs without tenacity, which costs as much time as
        # a small request. Returning its failure here makes tenacity count it.
        if not self._is_replayed:
            self._is_replayed = True
            return _FAILED
        try:
            return await self._send(self._newest_failure)
        except NeonError as error:
            self._newest_failure = error
            self._failed_at = self._time()
            return _FAILED

    def _may_retry(self, outcome: T | _Failed) -> bool:
        return outcome is _FAILED and may_retry(self._newest_failure, is_read=self._is_read)

    def _is_exhausted(self, state: RetryCallState) -> bool:
        if isinstance(self._newest_failure, RateLimitedError):
            self._rate_limited += 1
        elif state.attempt_number - self._rate_limited >= self._max_attempts:
            return True
        return self._is_too_late(state)

    def _is_too_late(self, state: RetryCallState) -> bool:
        next_attempt_at = max(self._failed_at + state.upcoming_sleep, self._time())
        return next_attempt_at >= self._deadline - MIN_ATTEMPT_SECONDS

    async def _prepare(self, state: RetryCallState) -> None:
        """After a 423, acquire the retry slot of the project. Then report the retry."""
        is_locked = isinstance(self._newest_failure, LockedError)
        if is_locked and self._held_lock is None and self._project_lock is not None:
            await self._acquire_retry_slot(self._project_lock())
            if self._is_too_late(state):
                raise _NoTimeLeft
        self._report(state)

    async def _acquire_retry_slot(self, lock: ProjectLock) -> None:
        lock.report()
        with anyio.move_on_after(self._deadline - self._time()):
            await lock.retry_slot.acquire()
            self._held_lock = lock

    def _report(self, state: RetryCallState) -> None:
        retry = RetryPlanned(
            error=self._newest_failure, attempt=state.attempt_number, delay=state.upcoming_sleep
        )
        _logger.log(self._level(), "retrying in %.3g s, after %s", retry.delay, retry.error)
        self._notify(retry)

    def _level(self) -> int:
        """Return DEBUG for a failure that is logged once for many calls, else WARNING."""
        match self._newest_failure:
            case RateLimitedError():
                return logging.DEBUG
            case LockedError() if self._held_lock is not None:
                return logging.DEBUG
            case _:
                return logging.WARNING

    async def _pause(self, seconds: float) -> None:
        if self._held_lock is not None and isinstance(self._newest_failure, LockedError):
            # Not every running operation holds the lock, so keep some time for attempts.
            with anyio.move_on_after((self._deadline - self._time()) / 2):
                if await self._held_lock.settle():
                    seconds = _retry_after(self._newest_failure)
        await asyncio.sleep(self._failed_at + seconds - self._time())


def _retry_after(error: NeonError) -> float:
    return error.retry_after or 0.0 if isinstance(error, APIError) else 0.0
