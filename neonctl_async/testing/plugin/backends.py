"""The backends of the fixtures: a local control plane, and a project at Neon."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import NoneType
from typing import Final
from uuid import uuid4

from msgspec import UNSET

from neonctl_async.client import NeonClient
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import BranchCreated
from neonctl_async.models.endpoints import EndpointSpec
from neonctl_async.models.projects import Project, ProjectCreated
from neonctl_async.testing.plugin.background_loop import BackgroundLoop
from neonctl_async.testing.plugin.branches import BranchFactory, Ephemeral, branch_until_reset
from neonctl_async.testing.plugin.cloud import deletions_of
from neonctl_async.testing.plugin.control_plane import ControlPlane, TenantClient
from neonctl_async.testing.plugin.kept import KeptDatabases
from neonctl_async.testing.plugin.naming import (
    LIFETIME_SECONDS,
    RUN_LIFETIME_SECONDS,
    shared_prefix,
)

PREPARED_BRANCHES: Final = 2
"""The number of copies of the database that are kept ready for the next branches of a worker."""


@dataclass(frozen=True, repr=False)
class Backend(ABC):
    """Creates and deletes the resources of tests. ``neon`` is its client, on ``loop``."""

    loop: BackgroundLoop
    neon: NeonClient
    new_client: Callable[[], NeonClient]
    prefix: str
    _factories: list[BranchFactory] = field(default_factory=list[BranchFactory], init=False)

    @property
    def control_plane(self) -> ControlPlane | None:
        """The local control plane, or None at Neon."""
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
        factory = BranchFactory(self.loop, self._ephemeral(project_id))
        self._factories.append(factory)
        try:
            yield factory
        finally:
            self._factories.remove(factory)
            self._delete_all(factory)

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

        With ``until_end``, no test follows, so the end of the local control plane may delete it.
        """

    @abstractmethod
    def reset(self) -> None:
        """Remove the traces of a test before the next one."""

    @abstractmethod
    def _delete_all(self, factory: BranchFactory) -> None: ...


@dataclass(frozen=True, repr=False)
class LocalBackend(Backend):
    """A tenant of a local control plane. Each test has a new project, and a reset after it."""

    tenant: TenantClient
    local: ControlPlane
    kept: KeptDatabases
    _shared: list[str] = field(default_factory=list[str], init=False)

    @property
    def control_plane(self) -> ControlPlane:
        """The local control plane."""
        return self.local

    def project(self) -> Project:
        """Create a project."""
        return self.loop.call(self._create_project())

    async def _create_project(self) -> Project:
        return (await self.create_project()).project

    async def create_project(self) -> ProjectCreated:
        """Create a project, and wait until it is ready."""
        return await self.neon.projects.create(name="test", org_id=self.local.org_id, wait=True)

    @contextmanager
    def shared_branch(self, *, until_end: bool = False) -> Generator[BranchCreated, None, None]:
        """Create a branch, and include it in the state to which a reset returns.

        What tests write to its database stays. On exit, delete it, unless it is used
        ``until_end``. Raise RuntimeError if the current test has branches: they would be part of
        this state.
        """
        if any(factory.branch_ids for factory in self._factories):
            raise RuntimeError(
                "a shared branch must exist before the branches of the test: request the fixture "
                "of branch_fixture() in the arguments of the test, not with getfixturevalue()"
            )
        created = self.loop.call(self._create_shared(self.project().id))
        self._shared.append(created.branch.id)
        try:
            self._save()
            yield created
        finally:
            if not until_end:
                self.reset()
                self._shared.remove(created.branch.id)
                self.loop.call(self._delete_shared(created))
                self._save()

    async def _create_shared(self, project_id: str) -> BranchCreated:
        # An open connection of a session-wide engine must not end while other tests run.
        endpoint = EndpointSpec(type="read_write", suspend_timeout_seconds=-1)
        return await self.neon.branches.create(
            project_id,
            name=f"{shared_prefix(self.prefix)}-{uuid4().hex[:12]}",
            parent_id=UNSET if self.parent_id is None else self.parent_id,
            endpoints=[endpoint],
            wait=True,
        )

    async def _delete_shared(self, created: BranchCreated) -> None:
        await self.neon.projects.delete(created.branch.project_id)

    def _save(self) -> None:
        self.loop.call(self.tenant.call("save", NoneType, shared=self._shared))

    def reset(self) -> None:
        """Reset the tenant."""
        self.loop.call(self.tenant.call("reset", NoneType))

    def _delete_all(self, factory: BranchFactory) -> None:
        # A test may have revoked the key of this client. The reset deletes what remains.
        with suppress(NeonError):
            self.loop.call(self.tenant.call("clear_faults", NoneType))
            factory.delete_all()


@dataclass(frozen=True, repr=False)
class DatabaseBackend(LocalBackend):
    """A tenant of a local control plane with databases. All tests of a worker share a project.

    A reset returns the tenant to this project, as it was before the first test.
    """

    created: ProjectCreated
    _prepared: list[str] = field(default_factory=list[str], init=False)

    @property
    def parent_id(self) -> str:
        """The default branch of the project."""
        return self.created.branch.id

    @contextmanager
    def branches(self, project_id: str) -> Generator[BranchFactory, None, None]:
        """Provide a factory of branches. Suites that only share a branch prepare no others."""
        if not self._prepared:
            self._prepared.append(self.parent_id)
            prepared = {"branch_id": self.parent_id, "count": PREPARED_BRANCHES}
            self.loop.call(self.tenant.call("prepare_branches", NoneType, **prepared))
        with super().branches(project_id) as factory:
            yield factory

    def project(self) -> Project:
        """Return the shared project."""
        return self.created.project

    def keep(self, branch_id: str, database: str | None = None) -> str:
        """Copy the database of a branch, which may be in use, for the time after the test run.

        Return a command that connects to the copy, there to ``database`` if it is not None. Raise
        NeonError or RuntimeError.
        """
        return self.loop.call(self.kept.keep(self.tenant, branch_id, database))

    async def _delete_shared(self, created: BranchCreated) -> None:
        await self.neon.branches.delete(created.branch.project_id, created.branch.id, wait=True)

    def _ephemeral(self, project_id: str) -> Ephemeral:
        # The reset deletes all branches together, without stopping their servers one by one.
        return partial(
            branch_until_reset,
            self.neon,
            project_id,
            name_prefix=self.prefix,
            parent_id=self.parent_id,
        )

    def _delete_all(self, factory: BranchFactory) -> None:
        factory.delete_all()


@dataclass(frozen=True, repr=False)
class CloudBackend(Backend):
    """A project at Neon, which all tests share."""

    shared_project: Project
    migrated_id: str | None = None

    @property
    def parent_id(self) -> str | None:
        """The branch of the migrations, or None for the default branch of the project."""
        return self.migrated_id

    def project(self) -> Project:
        """Return the shared project."""
        return self.shared_project

    @contextmanager
    def shared_branch(self, *, until_end: bool = False) -> Generator[BranchCreated, None, None]:
        """Create a branch that exists for up to a day."""
        del until_end  # Neon would keep it
        ephemeral = partial(
            self._ephemeral(self.project().id),
            name_prefix=shared_prefix(self.prefix),
            ttl_seconds=RUN_LIFETIME_SECONDS,
        )
        factory = BranchFactory(self.loop, ephemeral)
        try:
            yield factory.create()
        finally:
            self._delete_all(factory)

    def reset(self) -> None:
        """Do nothing: the project is shared, and its factory deletes the branches of the test."""

    def _delete_all(self, factory: BranchFactory) -> None:
        try:
            factory.delete_all()
        except NeonError as error:
            # The test may have protected the branches, or created children of them.
            left = self.loop.call(self._delete_with_descendants(factory.branch_ids))
            if left:
                error.add_note("; ".join(left))
                raise

    async def _delete_with_descendants(self, branch_ids: list[str]) -> list[str]:
        """Delete branches. Return a text for each branch that is left."""
        deletions = await deletions_of(
            self.neon, self.shared_project.id, lambda branch: branch.id in branch_ids
        )
        await deletions.run()
        kept = [f"{one.branch.name} is kept: {one.reason}" for one in deletions.kept]
        return kept + [f"{one.branch.name} is left: {one.error}" for one in deletions.failed]
