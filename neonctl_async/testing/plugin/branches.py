"""Branches for one test."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import datetime
from typing import TypeAlias, TypedDict, Unpack

from neonctl_async.models.branches import BranchCreated
from neonctl_async.models.endpoints import EndpointSpec
from neonctl_async.testing.plugin.background_loop import BackgroundLoop


class BranchSettings(TypedDict, total=False):
    """What may be said of a branch: see ``neon.branches.ephemeral``."""

    parent_id: str
    parent_lsn: str
    parent_timestamp: datetime
    init_source: str
    endpoints: Sequence[EndpointSpec]
    timeout: float | None


Ephemeral: TypeAlias = Callable[..., AbstractAsyncContextManager[BranchCreated]]


class BranchFactory:
    """Makes branches that are ready, and gone after the test.

    ``await factory()`` in a coroutine, ``factory.create()`` elsewhere. They are made and deleted
    on an event loop that nothing stops: not the end, a failure or a cancellation of the test's.
    """

    def __init__(self, background_loop: BackgroundLoop, ephemeral: Ephemeral) -> None:
        self._background_loop = background_loop
        self._ephemeral = ephemeral
        self.made: list[str] = []
        """The ids of the branches."""
        self._branches = AsyncExitStack()
        self._creating: set[asyncio.Task[object]] = set()
        self._is_over = False

    async def __call__(self, **settings: Unpack[BranchSettings]) -> BranchCreated:
        """A new branch, with a compute unless ``endpoints`` tells otherwise."""
        return await self._background_loop.run(self._create(settings))

    def create(self, **settings: Unpack[BranchSettings]) -> BranchCreated:
        """The same for tests and fixtures that are no coroutines: it blocks."""
        return self._background_loop.call(self._create(settings))

    async def _create(self, settings: BranchSettings) -> BranchCreated:
        task = asyncio.current_task()
        assert task is not None, "it runs in a task of its own"
        if self._is_over:
            raise RuntimeError("the test that this factory was for is over")
        self._creating.add(task)
        try:
            created = await self._branches.enter_async_context(self._ephemeral(**settings))
        finally:
            self._creating.discard(task)
        self.made.append(created.branch.id)
        return created

    def delete_all(self) -> None:
        """Delete the branches, last made first: the others may be their parents. It blocks."""
        self._background_loop.call(self._delete_all())

    async def _delete_all(self) -> None:
        self._is_over = True
        if self._creating:  # by a test that did not live to see them
            for task in self._creating:
                task.cancel()
            await asyncio.wait(self._creating)
        await self._branches.aclose()
