"""Which failures pass, and when to try again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from neonctl_async.config import RetryPolicy
from neonctl_async.errors import APIError, NeonError, TransportError

T = TypeVar("T")

NOTHING_DONE = frozenset({423, 429, 503})
"""The platform did nothing: safe to send again, whatever the method."""
PASSING = NOTHING_DONE | {408, 500, 502, 504}
"""The failure passes, but the work may have been done: safe to send again where nothing changes."""


def may_retry(error: BaseException, method: str) -> bool:
    """Whether sending the request again may help, and cannot do its work twice.

    401 is asked exactly once, like every answer that will not change.
    """
    match error:
        case APIError():
            return error.status in (PASSING if method == "GET" else NOTHING_DONE)
        case TransportError():
            return method == "GET" or not error.maybe_delivered
        case _:
            return False


async def send_with_retries(
    send: Callable[[], Awaitable[T]], method: str, policy: RetryPolicy
) -> T:
    """What ``send`` returns, called again as ``policy`` says when it fails in passing.

    Raises the newest failure: at once if it does not pass, else when the policy's bounds are
    reached, or would be by the wait that ``Retry-After`` asks for.
    """
    started = asyncio.get_running_loop().time()
    try:
        return await send()
    except NeonError as error:
        if not may_retry(error, method):
            raise
        first_failure = error
    return await _retry(send, first_failure, started, method, policy)


async def _retry(
    send: Callable[[], Awaitable[T]],
    first_failure: NeonError,
    started: float,
    method: str,
    policy: RetryPolicy,
) -> T:
    # The first try went without tenacity, which costs as much as a small request. Replaying its
    # failure makes it tenacity's first attempt all the same.
    replay: list[NeonError] = [first_failure]

    async def attempt() -> T:
        if replay:
            raise replay.pop()
        return await send()

    backoff = wait_random_exponential(multiplier=policy.initial, max=policy.maximum)
    loop = asyncio.get_running_loop()

    def delay(state: RetryCallState) -> float:
        return max(backoff(state), _asked_delay(state))

    def out_of_bounds(state: RetryCallState) -> bool:
        next_try = loop.time() + state.upcoming_sleep
        return state.attempt_number >= policy.attempts or next_try > started + policy.deadline

    retrying = AsyncRetrying(
        retry=retry_if_exception(lambda error: may_retry(error, method)),
        wait=delay,
        stop=out_of_bounds,
        sleep=asyncio.sleep,
        reraise=True,
    )
    return await retrying(attempt)


def _asked_delay(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return error.retry_after or 0.0 if isinstance(error, APIError) else 0.0
