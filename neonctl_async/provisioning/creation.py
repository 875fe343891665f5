"""Create an object once, whatever happens to the requests: search for it, or adopt it."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from neonctl_async.clock import loop_time
from neonctl_async.config import RetryPolicy
from neonctl_async.errors import (
    ClientClosedError,
    ConflictError,
    LockedError,
    MismatchError,
    NeonError,
    WaitError,
)

T = TypeVar("T")

SEARCH_DELAYS = (0.0, 1.0, 2.0)
"""Seconds before each search for an object that may have been created, although no response
arrived."""
_MAX_DOUBLINGS = 64
"""The number of doublings after which any delay exceeds the maximum."""


def may_have_been_created(error: Exception) -> bool:
    """Return whether the call that failed with this error may have created its object.

    The result is False if the error reports the failure of a wait or of a read.
    """
    if not isinstance(error, NeonError) or isinstance(error, WaitError):
        return False
    return error.maybe_delivered and getattr(error, "method", "") != "GET"


def may_exist_after(error: NeonError) -> bool:
    """Return whether the object may exist now, created by this call or by another process."""
    is_taken = isinstance(error, ConflictError) and not isinstance(error, MismatchError)
    return is_taken or may_have_been_created(error)


async def search(find: Callable[[], Awaitable[T | None]]) -> T | None:
    """Return the object that may have been created, or None if three searches find nothing.

    Even then, Neon may still create the object later.
    """
    for seconds in SEARCH_DELAYS:
        await asyncio.sleep(seconds)
        found = await find()
        if found is not None:
            return found
    return None


async def adopt_or_create(
    adopt: Callable[[], Awaitable[T | None]],
    create: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
) -> T:
    """Return the result of ``adopt``, or the result of ``create`` if ``adopt`` finds nothing.

    After a conflict or a lost response, ``adopt`` searches again. If it finds nothing, the creation
    is repeated. That is safe because the API allows the object only once: of two requests, the
    second gets a conflict. ``policy`` limits the attempts, and the time since the first failure,
    because the first request may have waited a long time for the rate budget.

    Raises the latest failure after the last attempt. Its ``maybe_delivered`` is True if any of the
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
            is_in_doubt = is_in_doubt or may_have_been_created(error)
            if error is failure or failures >= policy.attempts or not _may_help_to_repeat(error):
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


def _may_help_to_repeat(error: NeonError) -> bool:
    if isinstance(error, ClientClosedError):
        return False
    return isinstance(error, LockedError) or may_exist_after(error)


def _backoff(policy: RetryPolicy, failures: int) -> float:
    longest = min(policy.maximum, policy.initial * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))
    return random.uniform(0.0, longest)  # noqa: S311 - spreads the load, protects no secret
