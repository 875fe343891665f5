"""A temporary branch: created, waited for, and deleted on exit."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import uuid4

import anyio
from msgspec import UNSET, UnsetType

from neonctl_async.errors import NeonError
from neonctl_async.models.branches import BranchCreated, EphemeralSettings
from neonctl_async.provisioning.creation import SEARCH_DELAYS, may_have_been_created, search
from neonctl_async.provisioning.deletion import delete_branch
from neonctl_async.resources.base import LONGEST_LIFETIME, CallRunner, check_within
from neonctl_async.resources.branches import BranchCalls, with_uri
from neonctl_async.waiting.waiter import WaitOptions

T = TypeVar("T")

CLEANUP_SECONDS = 30.0
"""The time limit for the cleanup. Ctrl-C, a test run or a task group waits for it."""
_LEFTOVER = "the ephemeral branch may still exist"


class EphemeralBranch:
    """The branch of one ``async with`` block.

    ``now`` returns the server's time, because a wrong local clock must not change the lifetime.
    Raises TypeError or ValueError for an invalid ``ttl_seconds``.
    """

    def __init__(
        self,
        branches: BranchCalls,
        project_id: str,
        settings: EphemeralSettings,
        *,
        name: str | UnsetType,
        name_prefix: str,
        ttl_seconds: int | None,
        now: Callable[[], datetime],
    ) -> None:
        if ttl_seconds is not None:
            check_within("ttl_seconds", ttl_seconds, 1, LONGEST_LIFETIME // timedelta(seconds=1))
        self.may_exist: bool = True
        """False once Neon has rejected the creation."""
        self._branches = branches
        self._project_id = project_id
        self._settings = settings
        self._has_unique_name = isinstance(name, UnsetType)
        self._name = f"{name_prefix}-{uuid4().hex[:12]}" if isinstance(name, UnsetType) else name
        self._ttl = None if ttl_seconds is None else timedelta(seconds=ttl_seconds)
        self._now = now
        self._id: str | None = None

    async def create(self) -> BranchCreated:
        """Create the branch."""
        ttl = self._ttl
        try:
            created = await self._branches.create(
                self._project_id,
                name=self._name,
                expires_at=UNSET if ttl is None else self._now() + ttl,
                **self._settings,
            )
        except Exception as error:
            self.may_exist = may_have_been_created(error)
            raise
        self._id = created.branch.id
        return created

    async def with_uri(self, created: BranchCreated) -> BranchCreated:
        """Return the branch, with a URI if it has a compute: Neon may have left the URIs out."""
        return await with_uri(self._branches, created)

    async def delete(self) -> None:
        """Delete the branch. Raise TimeoutError if it is not found, but may exist."""
        await delete_branch(self._branches, self._project_id, self._id or await self._search())

    async def _search(self) -> str:
        """Return the id of a branch whose creation got no response."""
        if not self._has_unique_name:
            raise TimeoutError("not searched for, because the caller chose its name")
        found = await search(self._find)
        if found is None:
            raise TimeoutError(
                f"not found in {len(SEARCH_DELAYS)} searches, but Neon may still create it"
            )
        return found

    async def _find(self) -> str | None:
        listed = await self._branches.list(self._project_id, search=self._name).collect()
        return next((branch.id for branch in listed if branch.name == self._name), None)


@asynccontextmanager
async def created_then_deleted(
    branch: EphemeralBranch, runner: CallRunner, options: WaitOptions, *, keep_on_error: bool
) -> AsyncGenerator[BranchCreated]:
    """Create the branch, wait for it, yield it, and delete it.

    A cancellation interrupts neither the creation nor the deletion; both are limited to
    ``CLEANUP_SECONDS`` after it. If the branch may still exist, a note on the error that leaves the
    block says so. With ``keep_on_error``, the branch is not deleted after an exception in the
    block.
    """
    try:
        created = await _run_uninterrupted("creating", branch.create())
        ready = await branch.with_uri(await runner.finish(created, options))
    except BaseException as failure:
        if branch.may_exist:
            await _clean_up(branch.delete(), failure)
        raise
    try:
        yield ready
    except BaseException as failure:
        if not (keep_on_error and isinstance(failure, Exception)):
            await _clean_up(branch.delete(), failure)
        raise
    await _clean_up(branch.delete(), None)


async def _clean_up(deletion: Coroutine[None, None, None], failure: BaseException | None) -> None:
    """Delete the branch. If that fails, add a note to ``failure``, or raise if it is None."""
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


async def _run_uninterrupted(
    action: str, work: Coroutine[None, None, T], *, timeout: float = math.inf
) -> T:
    """Return the result of ``work``, or raise TimeoutError after ``timeout`` seconds.

    A cancellation is raised only when ``work`` has finished, at most ``CLEANUP_SECONDS`` later. The
    cause of the CancelledError is the error of ``work``, if any.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    deadline = loop.time() + timeout
    cancellation: asyncio.CancelledError | None = None
    try:
        await _wait_or_cancel(task, deadline)
    except asyncio.CancelledError as error:
        cancellation = error
        deadline = min(deadline, loop.time() + CLEANUP_SECONDS)
        with anyio.CancelScope(shield=True):  # a cancelled scope of anyio would cancel repeatedly
            while not task.done():
                with suppress(asyncio.CancelledError):
                    await _wait_or_cancel(task, deadline)
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
