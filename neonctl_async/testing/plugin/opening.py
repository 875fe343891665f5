"""Opens the backends of the fixtures, and prepares the databases of a test run."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import NoneType
from urllib.parse import urlsplit
from uuid import uuid4

from neonctl_async.client import NeonClient
from neonctl_async.config import PollPolicy, RateBudget, RetryPolicy
from neonctl_async.models.branches import BranchCreated
from neonctl_async.models.endpoints import EndpointSpec
from neonctl_async.models.projects import ProjectCreated
from neonctl_async.models.secret import Secret
from neonctl_async.testing.fake_clock import real_time_hooks
from neonctl_async.testing.plugin.backends import (
    Backend,
    CloudBackend,
    DatabaseBackend,
    LocalBackend,
)
from neonctl_async.testing.plugin.background_loop import BackgroundLoop, run_background_loop
from neonctl_async.testing.plugin.cloud import cloud_client
from neonctl_async.testing.plugin.control_plane import ControlPlane, TenantClient
from neonctl_async.testing.plugin.kept import KeptDatabases
from neonctl_async.testing.plugin.migrations import Preparation, migrate_database
from neonctl_async.testing.plugin.naming import parent_prefix, worker_prefix
from neonctl_async.testing.plugin.targets import CloudAccount, ServerURLs
from neonctl_async.testing.plugin.tenant_calls import TenantAdded
from neonctl_local.postgres.migrated import locked_key

_CLIENTS_PER_PROCESS = 2
"""The client of the fixtures and the client of the current test share the rate budget."""


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


@contextmanager
def open_cloud(
    account: CloudAccount, run_id: str, preparation: Preparation
) -> Generator[Backend, None, None]:
    """Open a backend that uses the project of ``account``.

    With migrations, new branches are children of a branch of this test run. Raise RuntimeError if
    the migrations failed.
    """
    with (
        run_background_loop() as loop,
        loop.enter(_cloud_backend(loop, account, worker_prefix(run_id))) as backend,
    ):
        yield _with_parent(backend, preparation, run_id)


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
                polling=PollPolicy(initial=0.02),  # a local branch takes much less than one at Neon
                hooks=[real_time_hooks()],  # for tests on a fake clock
            )

        new_client = partial(client_of, added.api_key)
        kept = KeptDatabases(control, client_of)
        tenant = TenantClient(control, added.number)
        control_plane = ControlPlane(urls.base_url, added, tenant, loop)
        async with _watched(loop, urls.control_url), new_client() as neon:
            yield LocalBackend(loop, neon, new_client, prefix, tenant, control_plane, kept)


@asynccontextmanager
async def _watched(loop: BackgroundLoop, url: str) -> AsyncGenerator[None]:
    """Let calls on the loop fail at once when the server at ``url`` has exited."""
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


@asynccontextmanager
async def _cloud_backend(
    loop: BackgroundLoop, account: CloudAccount, prefix: str
) -> AsyncGenerator[CloudBackend]:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    new_client = partial(cloud_client, account, parts=_CLIENTS_PER_PROCESS * workers)
    async with new_client() as neon:
        project = await neon.projects.get(account.project_id)
        yield CloudBackend(loop, neon, new_client, prefix, project)


def _with_databases(local: LocalBackend, preparation: Preparation) -> DatabaseBackend:
    """Create the project of a worker, with the result of the migrations, and keep its state."""
    migrated: list[ProjectCreated] = []

    def make() -> str:
        created = local.loop.call(local.create_project())
        assert preparation.migrate is not None, "the caller checks this"
        migrate_database(preparation.migrate, created.connection_uri)
        migrated.append(created)
        return local.loop.call(_publish(local, created))

    def step() -> str:
        return make() if preparation.key is None else _cached(local, preparation, make)

    template = None if preparation.migrate is None else preparation.run_once(step)
    created = migrated[0] if migrated else local.loop.call(_create_from(local, template))
    local.loop.call(local.tenant.call("save", NoneType))
    return DatabaseBackend(
        local.loop,
        local.neon,
        local.new_client,
        local.prefix,
        local.tenant,
        local.local,
        local.kept,
        created,
    )


def _cached(local: LocalBackend, preparation: Preparation, make: Callable[[], str]) -> str:
    """Return the template of an earlier test run. Make it, and keep it, if there is none."""
    assert preparation.key is not None, "the caller checks this"
    key = {"key": preparation.key}
    call = local.tenant.call
    with locked_key(preparation.key) as has_cache:
        template = ""
        if has_cache and not preparation.rebuilds:
            template = local.loop.call(call("load_template", str, **key))
        if template:
            return template
        template = make()
        if has_cache:
            local.loop.call(call("keep_template", NoneType, template=template, **key))
        return template


async def _publish(local: LocalBackend, created: ProjectCreated) -> str:
    """Suspend the compute. Copy the database to a template for the projects of other workers."""
    await _suspend(local, created)
    return await local.tenant.call("publish_template", str, branch_id=created.branch.id)


async def _create_from(local: LocalBackend, template: str | None) -> ProjectCreated:
    """Create a project from a template, and suspend its compute."""
    await local.tenant.call("use_template", NoneType, template=template)
    try:
        created = await local.create_project()
    finally:  # the projects that tests create are empty
        await local.tenant.call("use_template", NoneType, template=None)
    await _suspend(local, created)
    return created


async def _suspend(local: LocalBackend, created: ProjectCreated) -> None:
    # The database of a suspended compute can be copied at once.
    for endpoint in created.endpoints:
        await local.neon.endpoints.suspend(created.project.id, endpoint.id, wait=True)


def _with_parent(cloud: CloudBackend, preparation: Preparation, run_id: str) -> CloudBackend:
    """Return the backend with the branch of the migrations as the parent of new branches."""
    if preparation.migrate is None:
        return cloud
    migrate = preparation.migrate

    def step() -> str:
        created = cloud.loop.call(_create_parent(cloud, run_id))
        migrate_database(migrate, created.connection_uri)
        return created.branch.id

    return replace(cloud, migrated_id=preparation.run_once(step))


async def _create_parent(cloud: CloudBackend, run_id: str) -> BranchCreated:
    # It does not expire, because Neon lets no branch with children expire. The sweep deletes it.
    return await cloud.neon.branches.create(
        cloud.shared_project.id,
        name=f"{parent_prefix(run_id)}{uuid4().hex[:12]}",
        endpoints=[EndpointSpec(type="read_write")],
        wait=True,
    )
