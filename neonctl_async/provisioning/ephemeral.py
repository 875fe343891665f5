"""A temporary branch: created, waited for, and deleted on exit."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import TypeAlias, TypeVar
from uuid import uuid4

import anyio
from msgspec import UNSET, UnsetType

from neonctl_async.clock import utc_now
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import BranchCreated
from neonctl_async.provisioning.deletion import delete_branch
from neonctl_async.resources.base import Requester, check_within
from neonctl_async.resources.branches import BranchCalls
from neonctl_async.waiting.options import WaitOptions

T = TypeVar("T")

CLEANUP_SECONDS = 30.0
"""Time limit for the cleanup, because Ctrl-C, a test run or a task group waits for it."""
SEARCH_DELAYS = (0.0, 1.0, 2.0)
"""Seconds before each search for a branch that may have been created without a response."""
_MAX_TTL_SECONDS = 10 * 366 * 86400
_LEFTOVER = "the ephemeral branch may still exist"

Find: TypeAlias = Callable[[], Coroutine[None, None, str | None]]
Delete: TypeAlias = Callable[[str], Coroutine[None, None, object]]


def ephemeral_branch(
    branches: BranchCalls,
    requester: Requester,
    project_id: str,
    create: Callable[..., Coroutine[None, None, BranchCreated]],
    *,
    name: str | UnsetType,
    name_prefix: str,
    ttl_seconds: int | None,
    keep_on_error: bool,
    options: WaitOptions,
) -> AbstractAsyncContextManager[BranchCreated]:
    """Return the context manager of ``branches.ephemeral``.

    ``create`` sends the request, and takes the ``name`` and ``expires_at``.
    """
    check_within("ttl_seconds", UNSET if ttl_seconds is None else ttl_seconds, 1, _MAX_TTL_SECONDS)
    is_named = not isinstance(name, UnsetType)
    generated_name = f"{name_prefix}-{uuid4().hex[:12]}"

    async def create_named() -> BranchCreated:
        ttl = None if ttl_seconds is None else timedelta(seconds=ttl_seconds)
        return await create(
            name=name if is_named else generated_name,
            expires_at=UNSET if ttl is None else utc_now() + ttl,
        )

    async def finish(created: BranchCreated) -> BranchCreated:
        return await requester.finish(created, options)

    async def find() -> str | None:
        found = await branches.list(project_id, search=generated_name).collect()
        return next((branch.id for branch in found if branch.name == generated_name), None)

    async def delete(branch_id: str) -> None:
        await delete_branch(branches, project_id, branch_id)

    return _created_then_deleted(
        create_named, finish, None if is_named else find, delete, keep_on_error=keep_on_error
    )


@asynccontextmanager
async def _created_then_deleted(
    create: Callable[[], Coroutine[None, None, BranchCreated]],
    finish: Callable[[BranchCreated], Coroutine[None, None, BranchCreated]],
    find: Find | None,
    delete: Delete,
    *,
    keep_on_error: bool,
) -> AsyncGenerator[BranchCreated]:
    """Yield the branch that ``create`` returns, after ``finish`` has waited for it; then delete it.

    ``find`` returns the id of a branch whose creation got no response. A cancellation interrupts
    neither the creation nor the deletion; both are limited to ``CLEANUP_SECONDS`` after it. If the
    branch may still exist, the error that leaves the block has a note about it. With
    ``keep_on_error``, an exception in the block deletes nothing.
    """
    branch_id: str | None = None
    may_exist = True
    is_ready = False

    async def run_create() -> BranchCreated:
        nonlocal branch_id, may_exist
        try:
            created = await create()
        except Exception as error:
            may_exist = isinstance(error, NeonError) and error.maybe_delivered
            raise
        branch_id = created.branch.id
        return created

    async def run_delete() -> None:
        await delete(branch_id or await _find_branch(find))

    try:
        created = await finish(await _run_uninterrupted("creating", run_create()))
        is_ready = True
        yield created
    except BaseException as failure:
        is_kept = keep_on_error and is_ready and isinstance(failure, Exception)
        if may_exist and not is_kept:
            await _clean_up(run_delete(), failure)
        raise
    await _clean_up(run_delete(), None)


async def _clean_up(deletion: Coroutine[None, None, None], failure: BaseException | None) -> None:
    """Delete the branch. If that fails, add a note to ``failure``, or raise without one."""
    try:
        await _run_uninterrupted("deleting", deletion, timeout=CLEANUP_SECONDS)
    except asyncio.CancelledError as cancellation:
        if cancellation.__cause__ is not None:
            cancellation.add_note(f"{_LEFTOVER}: {cancellation.__cause__}")
        raise
    except (NeonError, TimeoutError) as error:
        (failure or error).add_note(f"{_LEFTOVER}: {error}")
        if failure is None:
            raise


async def _find_branch(find: Find | None) -> str:
    """Return the id of a branch that may appear only after the first searches."""
    if find is None:
        raise TimeoutError("not searched for, because the caller chose its name")
    for seconds in SEARCH_DELAYS:
        await asyncio.sleep(seconds)
        branch_id = await find()
        if branch_id is not None:
            return branch_id
    raise TimeoutError(f"not found in {len(SEARCH_DELAYS)} searches, but Neon may still create it")


async def _run_uninterrupted(
    action: str, work: Coroutine[None, None, T], *, timeout: float = math.inf
) -> T:
    """Return the result of ``work``, or raise TimeoutError after ``timeout`` seconds.

    A cancellation is raised when ``work`` has finished, at most ``CLEANUP_SECONDS`` later. Its
    cause is the error of ``work``.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    deadline = loop.time() + timeout
    cancellation: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):  # a cancelled scope of anyio would cancel repeatedly
        while not task.done():
            try:
                await _wait_or_cancel(task, deadline)
            except asyncio.CancelledError as error:
                cancellation = cancellation or error
                deadline = min(deadline, loop.time() + CLEANUP_SECONDS)
    timed_out: TimeoutError | None = None
    if task.cancelled():
        timed_out = TimeoutError(
            f"{action} the ephemeral branch took longer than {CLEANUP_SECONDS:g} s"
        )
    if cancellation is not None:
        raise cancellation from timed_out or task.exception()
    if timed_out is not None:
        raise timed_out
    return task.result()


async def _wait_or_cancel(task: "asyncio.Task[T]", deadline: float) -> None:
    """Wait until a task is done. Cancel it at the deadline."""
    left = deadline - asyncio.get_running_loop().time()
    await asyncio.wait([task], timeout=None if left == math.inf else max(left, 0.0))
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
