"""The interface that the fixtures use, locally and on Neon: a backend and its branches."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    contextmanager,
)
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, Unpack

from msgspec import UNSET

from neonctl_async import NeonClient
from neonctl_async.types import BranchCreated, EphemeralSettings, Project
from pytest_neonctl_async.background_loop import BackgroundLoop
from pytest_neonctl_async.control_plane import ControlPlane
from pytest_neonctl_async.naming import LIFETIME_SECONDS


class BranchSettings(EphemeralSettings, total=False):
    """The settings of a new branch; see ``neon.branches.ephemeral``."""

    timeout: float | None


Ephemeral: TypeAlias = Callable[..., AbstractAsyncContextManager[BranchCreated]]


class BranchFactory:
    """Creates branches that are ready to use, and deletes them after the test.

    Use ``await factory()`` in a coroutine, and ``factory.create()`` in other tests and fixtures.
    The branches are created and deleted on a background event loop, so a test that fails,
    is cancelled or closes its own loop does not interrupt that work.
    """

    def __init__(
        self, loop: BackgroundLoop, ephemeral: Ephemeral, keep: Callable[[str], Awaitable[None]]
    ) -> None:
        self._loop = loop
        self._keep = keep
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
            if isinstance(parent_id := settings.get("parent_id"), str):
                await self._keep(parent_id)
            created = await self._branches.enter_async_context(self._ephemeral(**settings))
        finally:
            self._creating.discard(task)
        self.branch_ids.append(created.branch.id)
        return created

    def delete_all(self) -> None:
        """Delete the branches, newest first because they may be children. Block until done."""
        self._loop.call(self._delete_all())

    async def _delete_all(self) -> None:
        self._is_closed = True
        if self._creating:  # the test ended before these branches were ready
            for task in self._creating:
                task.cancel()
            await asyncio.wait(self._creating)
        await self._branches.aclose()


@dataclass(frozen=True, repr=False)
class Backend(ABC):
    """Creates and deletes the resources of tests. ``neon`` is its client, which uses ``loop``."""

    loop: BackgroundLoop
    neon: NeonClient
    new_client: Callable[[], NeonClient]
    prefix: str
    _factories: list[BranchFactory] = field(default_factory=list[BranchFactory], init=False)

    @property
    def control_plane(self) -> ControlPlane | None:
        """The local control plane, or None on Neon."""
        return None

    @property
    def parent_id(self) -> str | None:
        """The parent of new branches, or None for the default branch of the project."""
        return None

    @abstractmethod
    def project(self) -> Project:
        """Return the project of a test."""

    @contextmanager
    def branches(self, project_id: str) -> Generator[BranchFactory, None, None]:
        """Provide a factory of branches in a project. On exit, delete its branches."""
        factory = self._factory(project_id, self._ephemeral(project_id))
        self._factories.append(factory)
        try:
            yield factory
        finally:
            self._factories.remove(factory)
            self._delete_all(factory)

    def _factory(self, project_id: str, ephemeral: Ephemeral) -> BranchFactory:
        return BranchFactory(self.loop, ephemeral, partial(self._keep, project_id))

    async def _keep(self, project_id: str, branch_id: str) -> None:
        """Remove the expiry of a branch that will get a child, because Neon does not allow both."""
        if (await self.neon.branches.get(project_id, branch_id)).expires_at is not None:
            await self.neon.branches.update(project_id, branch_id, expires_at=None)

    def _ephemeral(self, project_id: str) -> Ephemeral:
        return partial(
            self.neon.branches.ephemeral,
            project_id,
            name_prefix=self.prefix,
            ttl_seconds=LIFETIME_SECONDS,
            parent_id=UNSET if self.parent_id is None else self.parent_id,
        )

    @abstractmethod
    def shared_branch(self, *, until_end: bool = False) -> AbstractContextManager[BranchCreated]:
        """Create a branch that outlives resets. On exit, delete it.

        ``until_end`` means that no test follows, so the branch may remain until the local control
        plane stops.
        """

    @abstractmethod
    def reset(self) -> None:
        """Remove the traces of a test before the next one."""

    @abstractmethod
    def _delete_all(self, factory: BranchFactory) -> None: ...
