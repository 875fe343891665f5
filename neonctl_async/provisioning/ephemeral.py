"""A branch for a while: created, waited for, and deleted whatever happens."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

import anyio

from neonctl_async.errors import NeonError
from neonctl_async.models.branches import BranchCreated

T = TypeVar("T")

CLEANUP_SECONDS = 30.0
"""How long a way out may take that others wait for: Ctrl-C, a test run, a task group."""
LOOKS = (0.0, 1.0, 2.0)
"""The seconds before each look for a branch that may be made though no answer said so."""
DELETIONS = 3
"""How often a branch is deleted that may be deleted already: it does no harm."""
_PAUSE = 0.25


Find: TypeAlias = Callable[[], Coroutine[None, None, str | None]]
Delete: TypeAlias = Callable[[str], Coroutine[None, None, object]]


@asynccontextmanager
async def ephemeral_branch(
    create: Callable[[], Coroutine[None, None, BranchCreated]],
    finish: Callable[[BranchCreated], Coroutine[None, None, BranchCreated]],
    find: Find | None,
    delete: Delete,
) -> AsyncGenerator[BranchCreated]:
    """What ``create`` makes, once ``finish`` has waited for it; deleted on the way out.

    ``find`` looks for the id of a branch that may be there although no answer told so. Neither a
    creation nor a deletion is cut short by a cancellation; both are bounded. What is left behind
    is told by a note on the error that leaves the block.
    """
    branch_id: str | None = None
    may_be_there = True

    async def make() -> BranchCreated:
        nonlocal branch_id, may_be_there
        try:
            created = await create()
        except Exception as error:
            may_be_there = isinstance(error, NeonError) and error.maybe_delivered
            raise
        branch_id = created.branch.id
        return created

    async def remove() -> None:
        await _deleted(branch_id or await _found(find), delete)

    try:
        yield await finish(await _carried_through("its creation", make()))
    except BaseException as failure:
        if may_be_there:
            await _carry_out(remove(), failure)
        raise
    await _carry_out(remove(), None)


async def _carry_out(removal: Coroutine[None, None, None], failure: BaseException | None) -> None:
    """Remove the branch. If that fails, ``failure`` has a note of it, or else it is raised."""
    try:
        await _carried_through("its deletion", removal, within=CLEANUP_SECONDS)
    except asyncio.CancelledError as cancellation:
        if cancellation.__cause__ is not None:
            cancellation.add_note(f"{_LEFT}: {cancellation.__cause__}")
        raise
    except (NeonError, TimeoutError) as error:
        (failure or error).add_note(f"{_LEFT}: {error}")
        if failure is None:
            raise


async def _found(find: Find | None) -> str:
    """The branch, which the platform may still be about to make."""
    if find is None:
        raise TimeoutError("it was given a name, and is not looked for by that")
    for seconds in LOOKS:
        await asyncio.sleep(seconds)
        branch_id = await find()
        if branch_id is not None:
            return branch_id
    raise TimeoutError("it was not found, but may still be made")


async def _deleted(branch_id: str, delete: Delete) -> None:
    for _ in range(DELETIONS - 1):
        try:
            await delete(branch_id)
        except NeonError as error:
            if not error.maybe_delivered:
                raise
            await asyncio.sleep(_PAUSE)
        else:
            return
    await delete(branch_id)


async def _carried_through(
    what: str, work: Coroutine[None, None, T], *, within: float = math.inf
) -> T:
    """What ``work`` comes to within so many seconds; TimeoutError if it takes longer.

    A cancellation is taken up when it is over, or after ``CLEANUP_SECONDS``; what it failed with
    is the cause.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    deadline = loop.time() + within
    cancellation: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):  # a scope of anyio's would cancel again and again
        while not task.done():
            try:
                await _end(task, deadline)
            except asyncio.CancelledError as error:
                cancellation = cancellation or error
                deadline = min(deadline, loop.time() + CLEANUP_SECONDS)
    late = (
        TimeoutError(f"{what} took longer than {CLEANUP_SECONDS:g} s") if task.cancelled() else None
    )
    if cancellation is not None:
        raise cancellation from late or task.exception()
    if late is not None:
        raise late
    return task.result()


async def _end(task: "asyncio.Task[T]", deadline: float) -> None:
    """Wait for the end of a task, which is cancelled at the deadline."""
    left = deadline - asyncio.get_running_loop().time()
    await asyncio.wait([task], timeout=None if left == math.inf else max(left, 0.0))
    if not task.done():
        task.cancel()
        await asyncio.wait([task])


_LEFT = "its ephemeral branch may still be there"
