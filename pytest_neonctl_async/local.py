"""Tests on a local control plane: the backends without and with databases."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from types import NoneType
from typing import Final, Unpack
from urllib.parse import urlsplit
from uuid import uuid4

from msgspec import UNSET, UnsetType

from neonctl_async import (
    EndpointSpec,
    NeonClient,
    NeonError,
    PollPolicy,
    RateBudget,
    RetryPolicy,
    Secret,
)
from neonctl_async.testing import real_time_hooks
from neonctl_async.types import (
    BranchCreated,
    DefaultEndpointSettings,
    EphemeralSettings,
    Project,
    ProjectCreated,
)
from neonctl_local import template_lock
from pytest_neonctl_async.backend import Backend, BranchFactory, Ephemeral
from pytest_neonctl_async.background_loop import BackgroundLoop, run_background_loop
from pytest_neonctl_async.control_plane import ControlPlane, TenantClient
from pytest_neonctl_async.migrations import Preparation, migrate_database
from pytest_neonctl_async.naming import LIFETIME_SECONDS, shared_prefix, worker_prefix
from pytest_neonctl_async.once import Outcome
from pytest_neonctl_async.server_process import ServerURLs
from pytest_neonctl_async.tenant_records import TenantAdded

PATIENT: Final = DefaultEndpointSettings(pg_settings={"idle_in_transaction_session_timeout": "0"})
"""Lets a transaction stay idle, for example at a breakpoint. Neon would end it after 5 minutes."""

PREPARED_BRANCHES: Final = 2
"""The number of copies of the database that are kept ready for the next branches of a worker."""


@dataclass(frozen=True, repr=False)
class LocalBackend(Backend):
    """A tenant of a local control plane. Each test gets a new project, and is followed by a reset.

    ``control`` is the client of the control server. ``client_of`` returns a client with an API key.
    """

    tenant: TenantClient
    local: ControlPlane
    control: NeonClient
    client_of: Callable[[str], NeonClient]
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

    async def create_project(
        self, defaults: DefaultEndpointSettings | UnsetType = UNSET
    ) -> ProjectCreated:
        """Create a project, and wait until it is ready. ``defaults`` are compute settings."""
        return await self.neon.projects.create(
            name="test",
            org_id=self.local.org_id,
            default_endpoint_settings=defaults,
            wait=True,
        )

    @contextmanager
    def shared_branch(self, *, until_end: bool = False) -> Generator[BranchCreated, None, None]:
        """Create a branch, and include it in the state to which a reset returns.

        What tests write to its database survives resets. On exit, delete the branch, unless
        ``until_end`` is true. Raise RuntimeError if the current test has branches: they would be
        part of this state.
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

    A reset restores this project to its state before the first test.
    """

    created: ProjectCreated
    _prepared: list[str] = field(default_factory=list[str], init=False)

    @property
    def parent_id(self) -> str:
        """The default branch of the project."""
        return self.created.branch.id

    @contextmanager
    def branches(self, project_id: str) -> Generator[BranchFactory, None, None]:
        """Provide a factory of branches.

        Copies of the database are prepared from the first call on, because test suites that use
        only shared branches do not need them.
        """
        if not self._prepared:
            self._prepared.append(self.parent_id)
            prepared = {"branch_id": self.parent_id, "count": PREPARED_BRANCHES}
            self.loop.call(self.tenant.call("prepare_branches", NoneType, **prepared))
        with super().branches(project_id) as factory:
            yield factory

    def project(self) -> Project:
        """Return the shared project."""
        return self.created.project

    async def _delete_shared(self, created: BranchCreated) -> None:
        await self.neon.branches.delete(created.branch.project_id, created.branch.id, wait=True)

    def _ephemeral(self, project_id: str) -> Ephemeral:
        # The reset deletes all branches together, without stopping their servers one by one.
        return partial(
            _branch_until_reset,
            self.neon,
            project_id,
            name_prefix=self.prefix,
            parent_id=self.parent_id,
        )

    def _delete_all(self, factory: BranchFactory) -> None:
        factory.delete_all()


@asynccontextmanager
async def _branch_until_reset(
    neon: NeonClient,
    project_id: str,
    *,
    name_prefix: str,
    timeout: float | None = 300.0,
    **settings: Unpack[EphemeralSettings],
) -> AsyncGenerator[BranchCreated]:
    """Create a branch as ``neon.branches.ephemeral`` does, but do not delete it."""
    settings.setdefault("endpoints", [EndpointSpec(type="read_write")])
    yield await neon.branches.create(
        project_id,
        name=f"{name_prefix}-{uuid4().hex[:12]}",
        expires_at=datetime.now(UTC) + timedelta(seconds=LIFETIME_SECONDS),
        wait=math.inf if timeout is None else float(timeout),
        **settings,
    )


@contextmanager
def open_local(
    urls: ServerURLs, run_id: str, preparation: Preparation, *, postgres: bool
) -> Generator[Backend, None, None]:
    """Open a backend that is a new tenant of the local control plane at ``urls``.

    With ``postgres``, its branches are databases. Raise RuntimeError if they cannot be prepared.
    """
    with (
        run_background_loop() as loop,
        loop.enter(_local_backend(loop, urls, worker_prefix(run_id))) as backend,
    ):
        yield _with_databases(backend, preparation) if postgres else backend


@asynccontextmanager
async def _local_backend(
    loop: BackgroundLoop, urls: ServerURLs, prefix: str
) -> AsyncGenerator[LocalBackend]:
    control = NeonClient(
        Secret(urls.control_token),
        base_url=urls.control_url,
        retry=RetryPolicy.never(),
        budget=RateBudget.unlimited(),
    )
    async with control:
        added = await control.request("POST", "/tenants", type=TenantAdded)

        def client_of(api_key: str) -> NeonClient:
            return NeonClient(
                Secret(api_key),
                base_url=urls.base_url,
                budget=RateBudget.unlimited(),
                polling=PollPolicy(initial=0.02),  # local branches are ready much sooner
                hooks=[real_time_hooks()],  # for tests on a fake clock
            )

        new_client = partial(client_of, added.api_key)
        tenant = TenantClient(control, added.number)
        control_plane = ControlPlane(urls.base_url, added, tenant, loop)
        async with _watched(loop, urls.control_url), new_client() as neon:
            yield LocalBackend(
                loop, neon, new_client, prefix, tenant, control_plane, control, client_of
            )


@asynccontextmanager
async def _watched(loop: BackgroundLoop, url: str) -> AsyncGenerator[None]:
    """Make calls on the loop fail at once when the server at ``url`` has exited."""
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    watching = asyncio.create_task(loop.watch(address.hostname, address.port))
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


def _with_databases(local: LocalBackend, preparation: Preparation) -> DatabaseBackend:
    """Create the project of a worker, with the result of the migrations, and save its state."""
    migrated: list[ProjectCreated] = []

    def make() -> str:
        created = local.loop.call(local.create_project(PATIENT))
        assert preparation.migrate is not None, "the caller checks this"
        migrate_database(preparation.migrate, created.connection_uri)
        migrated.append(created)
        local.loop.call(_suspend(local, created))
        if preparation.is_alone and preparation.key is None:
            return ""  # nobody needs a template
        branch = {"branch_id": created.branch.id}
        return local.loop.call(local.tenant.call("publish_template", str, **branch))

    def step() -> Outcome:
        return Outcome(make()) if preparation.key is None else _cached(local, preparation, make)

    template = None if preparation.migrate is None else preparation.run_once(step)
    if migrated:
        (created,) = migrated
    else:
        created = local.loop.call(_create_from(local, template, is_last=preparation.is_alone))
    local.loop.call(local.tenant.call("save", NoneType))
    return DatabaseBackend(
        local.loop,
        local.neon,
        local.new_client,
        local.prefix,
        local.tenant,
        local.local,
        local.control,
        local.client_of,
        created,
    )


def _cached(local: LocalBackend, preparation: Preparation, make: Callable[[], str]) -> Outcome:
    """Return the template of an earlier test run. If there is none, make and keep one.

    If it cannot be kept, the note of the outcome gives the reason.
    """
    assert preparation.key is not None, "the caller checks this"
    key = {"key": preparation.key}
    call = local.tenant.call
    with template_lock(preparation.key) as no_cache:
        if not no_cache and not preparation.rebuilds:
            template = local.loop.call(call("load_template", str, **key))
            if template:
                return Outcome(template)
        template = make()
        problem = no_cache or local.loop.call(call("keep_template", str, template=template, **key))
    if problem:
        problem = f"the migrated database is not kept for later runs: {problem}"
    return Outcome(template, note=problem)


async def _create_from(
    local: LocalBackend, template: str | None, *, is_last: bool
) -> ProjectCreated:
    """Create a project from a template, and suspend its compute."""
    await local.tenant.call("use_template", NoneType, template=template, is_last=is_last)
    try:
        created = await local.create_project(PATIENT)
    finally:  # the projects that tests create are empty
        await local.tenant.call("use_template", NoneType, template=None)
    await _suspend(local, created)
    return created


async def _suspend(local: LocalBackend, created: ProjectCreated) -> None:
    # The database of a suspended compute can be copied at once.
    for endpoint in created.endpoints:
        await local.neon.endpoints.suspend(created.project.id, endpoint.id, wait=True)
