"""A branch for a while: created, waited for, and deleted whatever happens."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from neonctl_async.errors import NeonError
from neonctl_async.models.branches import BranchCreated

CLEANUP_SECONDS = 30.0
"""How long a way out may take that others wait for: Ctrl-C, a test run, a task group."""


@asynccontextmanager
async def ephemeral_branch(
    create: Callable[[], Awaitable[BranchCreated]],
    finish: Callable[[BranchCreated], Awaitable[BranchCreated]],
    delete: Callable[[str], Awaitable[object]],
    delete_unseen: Callable[[], Awaitable[object]],
) -> AsyncGenerator[BranchCreated]:
    """What ``create`` makes, once ``finish`` has waited for it; deleted on the way out.

    ``delete_unseen`` is for a branch that may have been created although no answer told so.
    Deletions are shielded from cancellation, and bounded. One that fails is raised, except where
    something else failed before: that goes on, with a note.
    """
    try:
        created = await create()
    except (NeonError, asyncio.CancelledError) as failure:
        if not isinstance(failure, NeonError) or failure.maybe_delivered:
            await _undo(delete_unseen, failure)
        raise

    async def delete_created() -> object:
        return await delete(created.branch.id)

    try:
        yield await finish(created)
    except BaseException as failure:
        await _undo(delete_created, failure)
        raise
    await _shielded(delete_created)


async def _undo(delete: Callable[[], Awaitable[object]], failure: BaseException) -> None:
    try:
        await _shielded(delete)
    except (NeonError, TimeoutError) as error:
        failure.add_note(f"its ephemeral branch may still be there: {error}")


async def _shielded(delete: Callable[[], Awaitable[object]]) -> None:
    with anyio.CancelScope(shield=True, deadline=anyio.current_time() + CLEANUP_SECONDS) as scope:
        await delete()
    if scope.cancelled_caught:
        raise TimeoutError(f"the ephemeral branch was not deleted within {CLEANUP_SECONDS:g} s")
