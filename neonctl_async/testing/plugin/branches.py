"""Branches for one test."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import TypeAlias, Unpack
from uuid import uuid4

from neonctl_async.client import NeonClient
from neonctl_async.clock import utc_now
from neonctl_async.models.branches import BranchCreated
from neonctl_async.models.endpoints import EndpointSpec
from neonctl_async.resources.branches import EphemeralSettings
from neonctl_async.testing.plugin.background_loop import BackgroundLoop
from neonctl_async.testing.plugin.naming import LIFETIME_SECONDS
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT


class BranchSettings(EphemeralSettings, total=False):
    """The settings of a new branch; see ``neon.branches.ephemeral``."""

    timeout: float | None


Ephemeral: TypeAlias = Callable[..., AbstractAsyncContextManager[BranchCreated]]


@asynccontextmanager
async def branch_until_reset(
    neon: NeonClient,
    project_id: str,
    *,
    name_prefix: str,
    timeout: float | None = DEFAULT_TIMEOUT,
    **settings: Unpack[EphemeralSettings],
) -> AsyncGenerator[BranchCreated]:
    """Create a branch as ``neon.branches.ephemeral`` does, but do not delete it."""
    settings.setdefault("endpoints", [EndpointSpec(type="read_write")])
    yield await neon.branches.create(
        project_id,
        name=f"{name_prefix}-{uuid4().hex[:12]}",
        expires_at=utc_now() + timedelta(seconds=LIFETIME_SECONDS),
        wait=math.inf if timeout is None else float(timeout),
        **settings,
    )


class BranchFactory:
    """Creates branches that are ready to use, and deletes them after the test.

    Use ``await factory()`` in a coroutine, and ``factory.create()`` in other tests and fixtures.
    The branches are created and deleted on a background event loop. A test that fails, is
    cancelled or closes its own loop does not interrupt it.
    """

    def __init__(self, loop: BackgroundLoop, ephemeral: Ephemeral) -> None:
        self._loop = loop
        self._ephemeral = ephemeral
        self.branch_ids: list[str] = []
        """The ids of the created branches."""
        self._branches = AsyncExitStack()
        self._creating: set[asyncio.Task[object]] = set()
        self._is_closed = False

    async def __call__(self, **settings: Unpack[BranchSettings]) -> BranchCreated:
        """Create a branch, with a compute unless ``endpoints`` is empty."""
        return await self._loop.run(self._create(settings))

    def create(self, **settings: Unpack[BranchSettings]) -> BranchCreated:
        """Create a branch, and block until it is ready."""
        return self._loop.call(self._create(settings))

    async def _create(self, settings: BranchSettings) -> BranchCreated:
        task = asyncio.current_task()
        assert task is not None, "the background loop runs each call in a task"
        if self._is_closed:
            raise RuntimeError("the test of this branch factory is over: use the fixture again")
        self._creating.add(task)
        try:
            created = await self._branches.enter_async_context(self._ephemeral(**settings))
        finally:
            self._creating.discard(task)
        self.branch_ids.append(created.branch.id)
        return created

    def delete_all(self) -> None:
        """Delete the branches, newest first, because a branch may have newer children. Block."""
        self._loop.call(self._delete_all())

    async def _delete_all(self) -> None:
        self._is_closed = True
        if self._creating:  # the test ended before these branches were ready
            for task in self._creating:
                task.cancel()
            await asyncio.wait(self._creating)
        await self._branches.aclose()
