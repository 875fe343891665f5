"""Which failures pass, and when to try again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

import anyio
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from neonctl_async.config import RetryPolicy
from neonctl_async.errors import APIError, LockedError, NeonError, TransportError
from neonctl_async.hooks import RetryPlanned

T = TypeVar("T")

_logger = logging.getLogger(__name__)

TRANSIENT_STATUSES = frozenset({408, 423, 429, 500, 502, 503, 504})
"""The statuses of failures that pass."""
MIN_ATTEMPT_SECONDS = 0.1
"""Seconds that a further try has at the least: one that is given up at once helps nobody, and
leaves open whether it was carried out."""


def may_retry(error: BaseException, method: str) -> bool:
    """Whether sending the request again may help, and cannot do its work twice.

    401 is asked exactly once, like every answer that will not change.
    """
    match error:
        case APIError() if error.status not in TRANSIENT_STATUSES:
            return False
        case APIError() | TransportError():
            return method == "GET" or not error.maybe_delivered
        case _:
            return False


class ProjectLock(Protocol):
    """What is known of the lock that a 423 speaks of."""

    retry_slot: asyncio.Lock
    """Held by the one who tries again."""

    async def settle(self) -> bool:
        """Wait until the running operations have ended; False if none shows."""
        ...


async def send_again(
    send: Callable[[], Awaitable[T]],
    first_failure: NeonError,
    method: str,
    policy: RetryPolicy,
    *,
    deadline: float,
    notify: Callable[[RetryPlanned], None],
    lock_of_project: Callable[[], ProjectLock] | None = None,
) -> T:
    """What ``send`` returns, called as ``policy`` says after a first try that failed in passing.

    After a 423, with ``lock_of_project``, the next try comes as soon as the project's running
    operations have ended, and in turn with others who were locked out. Raises the newest failure:
    at once if it does not pass, else when the policy's bounds are reached, or would be by the wait
    that ``Retry-After`` asks for. ``deadline`` is on the loop's clock; ``tell`` is told of each
    further try.
    """
    further = _FurtherTries(send, first_failure, method, policy, deadline=deadline, notify=notify)
    if lock_of_project is None or not isinstance(first_failure, LockedError):
        return await further.run()
    lock = lock_of_project()
    with anyio.CancelScope(deadline=deadline) as scope:
        await lock.retry_slot.acquire()
    if scope.cancelled_caught:
        raise first_failure
    try:
        return await further.run(lock)
    finally:
        lock.retry_slot.release()


class _FurtherTries(Generic[T]):
    """The second and further tries of one call, up to ``deadline`` on the loop's clock."""

    def __init__(
        self,
        send: Callable[[], Awaitable[T]],
        first_failure: NeonError,
        method: str,
        policy: RetryPolicy,
        *,
        deadline: float,
        notify: Callable[[RetryPlanned], None],
    ) -> None:
        self._send = send
        self._newest = first_failure
        self._is_replayed = False
        self._method = method
        self._attempts = policy.attempts
        self._deadline = deadline
        self._tell = notify
        self._backoff = wait_random_exponential(multiplier=policy.initial, max=policy.maximum)
        self._time = asyncio.get_running_loop().time

    async def run(self, lock: ProjectLock | None = None) -> T:
        """What a further try returns. Raises the newest failure."""
        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda error: may_retry(error, self._method)),
            wait=lambda state: max(self._backoff(state), _asked_delay(self._newest)),
            stop=self._is_over,
            before_sleep=self._tell_of,
            sleep=lambda seconds: self._pause(seconds, lock),
            reraise=True,
        )
        return await retrying(self._attempt)

    async def _attempt(self) -> T:
        # The first try went without tenacity, which costs as much as a small request. Replaying
        # its failure makes it tenacity's first attempt all the same.
        if not self._is_replayed:
            self._is_replayed = True
            raise self._newest
        try:
            return await self._send()
        except NeonError as error:
            self._newest = error
            raise

    def _is_over(self, state: RetryCallState) -> bool:
        next_try = self._time() + state.upcoming_sleep
        return (
            state.attempt_number >= self._attempts
            or next_try + MIN_ATTEMPT_SECONDS > self._deadline
        )

    def _tell_of(self, state: RetryCallState) -> None:
        retry = RetryPlanned(
            error=self._newest, attempt=state.attempt_number, delay=state.upcoming_sleep
        )
        _logger.warning("trying again in %.3g s, after %s", retry.delay, retry.error)
        self._tell(retry)

    async def _pause(self, seconds: float, lock: ProjectLock | None) -> None:
        started = self._time()
        if lock is not None and isinstance(self._newest, LockedError):
            # Not all that runs need hold the lock: some of the time is left for further tries.
            with anyio.move_on_after((self._deadline - self._time()) / 2):
                if await lock.settle():
                    seconds = _asked_delay(self._newest)
        await asyncio.sleep(started + seconds - self._time())


def _asked_delay(error: NeonError) -> float:
    return error.retry_after or 0.0 if isinstance(error, APIError) else 0.0
