"""Create an object, or adopt the existing one, whatever happens to the requests."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from neonctl_async.clock import loop_time
from neonctl_async.config import RetryPolicy
from neonctl_async.errors import (
    APIError,
    ConflictError,
    InvalidResponseError,
    LockedError,
    MismatchError,
    NeonError,
    TransportError,
)

T = TypeVar("T")

_MAX_DOUBLINGS = 64
"""The number of doublings after which any delay exceeds the maximum."""


async def adopt_or_create(
    adopt: Callable[[], Awaitable[T | None]],
    create: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
) -> T:
    """Return the result of ``adopt``, or that of ``create`` if ``adopt`` finds nothing.

    After a conflict or a lost response, ``adopt`` searches again. If it finds nothing, the creation
    is repeated. That is safe because the API allows the object only once: of two requests, the
    second gets a conflict. ``policy`` limits the attempts, and the time since the first failure,
    because the first request may have waited long for the rate budget.

    Raises the newest failure after the last attempt. An error is ``maybe_delivered`` if any of the
    requests may have been executed.
    """
    deadline = 0.0
    failure: NeonError | None = None
    failures = 0
    is_in_doubt = False
    while True:
        try:
            adopted = await adopt()
            if adopted is not None:
                return adopted
            if failure is not None and (failures >= policy.attempts or loop_time() >= deadline):
                raise failure
            return await create()
        except NeonError as error:
            is_in_doubt = is_in_doubt or _may_have_been_executed(error)
            if error is failure or failures >= policy.attempts or not _may_exist_after(error):
                error.maybe_delivered = error.maybe_delivered or is_in_doubt
                raise
            if failure is None:
                deadline = loop_time() + policy.deadline
            failure = error
            failures += 1
            if isinstance(error, LockedError):
                failures = policy.attempts  # the client has waited for the lock already
        if failures > 1 or not isinstance(failure, ConflictError):
            await asyncio.sleep(_backoff(policy, failures))


def _may_exist_after(error: NeonError) -> bool:
    """Return whether the object may exist now, created by this request or by another process."""
    if isinstance(error, MismatchError):
        return False
    return isinstance(error, ConflictError | LockedError) or _may_have_been_executed(error)


def _may_have_been_executed(error: NeonError) -> bool:
    if not isinstance(error, APIError | TransportError | InvalidResponseError):
        return False
    return error.maybe_delivered and error.method != "GET"


def _backoff(policy: RetryPolicy, failures: int) -> float:
    longest = min(policy.maximum, policy.initial * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))
    return random.uniform(0.0, longest)  # noqa: S311 - spreads the load, protects no secret
