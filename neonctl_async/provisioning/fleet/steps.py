"""The requests for one tenant: ensure the branch, wait, get the connection URI."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from neonctl_async.errors import LockedError, NeonError
from neonctl_async.models.branches import Branch, BranchCreated
from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.models.databases import ConnectionDetails
from neonctl_async.models.endpoints import Endpoint
from neonctl_async.provisioning.creation import may_exist_after
from neonctl_async.provisioning.fleet.client import FleetClient
from neonctl_async.provisioning.fleet.new_projects import NewProjects
from neonctl_async.provisioning.fleet.planning import Job
from neonctl_async.provisioning.fleet.reports import TenantResult
from neonctl_async.provisioning.fleet.tenants import Tenant, or_unset
from neonctl_async.waiting.waiter import WaitOptions

T = TypeVar("T")

MAX_LOCKED_SECONDS: Final = 300.0
"""How long a locked project may go without progress, in seconds."""
LOCKED_PAUSE: Final = 1.0
"""Seconds before the next attempt in a locked project."""


class StepOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options for provisioning a tenant."""

    wait: WaitOptions | None
    """None to return without waiting."""
    uris: bool
    """True to return connection URIs."""
    pooled: bool
    """True for connection URIs that use the pooler."""


class TenantSteps:
    """Provisions single tenants, without a journal: Neon's records are the state."""

    def __init__(self, neon: FleetClient, new_projects: NewProjects, options: StepOptions) -> None:
        self._neon = neon
        self._new_projects = new_projects
        self._options = options
        self._locked_projects = LockedProjects()

    async def run(self, job: Job, parent_id: str | None) -> TenantResult:
        """Provision a tenant. If it is ready, only an update, URI or connection needs requests."""
        planned, tenant = job.planned, job.tenant
        project_id = planned.project_id or await self._new_projects.id_of(tenant.project)
        if planned.branch is not None and planned.action == "update":
            update = partial(self._update, job, planned.branch)
            await self._locked_projects.repeat(project_id, update)
        if planned.branch is not None and planned.is_ready:
            await self._connect(tenant, project_id, job.endpoint_id)
            result = await self._result(tenant, planned.branch, created=False)
            return msgspec.structs.replace(result, updated=planned.action == "update")
        provision = partial(self._ensure, tenant, project_id)
        if planned.branch is None and (tenant.parent is None or parent_id is not None):
            provision = partial(self._create_or_ensure, tenant, project_id, parent_id)
        result = await self._locked_projects.repeat(project_id, provision)
        return msgspec.structs.replace(result, updated=planned.action == "update")

    async def _update(self, job: Job, branch: Branch) -> None:
        """Change what differs. Repeating the requests after a failure does no harm."""
        wait = self._wait_for_changes
        if job.changes.branch:
            wanted = {name: getattr(job.tenant, name) for name in job.changes.branch}
            await self._neon.branches.update(
                branch.project_id, branch.id, **wanted, wait=wait or False
            )
        if job.changes.compute and job.endpoint_id is not None:
            wanted = {name: job.tenant.compute_settings[name] for name in job.changes.compute}
            await self._neon.endpoints.update(
                branch.project_id, job.endpoint_id, **wanted, wait=wait or False
            )

    async def _create_or_ensure(
        self, tenant: Tenant, project_id: str, parent_id: str | None
    ) -> TenantResult:
        """Create a branch that was not listed. This needs one request fewer than ``ensure``."""
        try:
            created = await self._create(tenant, project_id, parent_id)
        except NeonError as error:
            if not may_exist_after(error):
                raise
            return await self._ensure(tenant, project_id)
        await self._name_compute(tenant, created.endpoints)
        return await self._result(
            tenant, created.branch, created=True, uris=created.connection_uris
        )

    async def _create(
        self, tenant: Tenant, project_id: str, parent_id: str | None
    ) -> BranchCreated:
        return await self._neon.branches.create(
            project_id,
            name=tenant.branch,
            parent_id=or_unset(parent_id),
            wait=self._wait_for(tenant) or False,
            **tenant.branch_settings,
        )

    async def _ensure(self, tenant: Tenant, project_id: str) -> TenantResult:
        """Adopt a branch that exists or may exist, or create it."""
        ensured = await self._neon.branches.ensure(
            project_id,
            name=tenant.branch,
            parent=or_unset(tenant.parent),
            wait=self._wait_for(tenant) or False,
            **tenant.branch_settings,
        )
        await self._name_compute(tenant, ensured.endpoints)
        return await self._result(
            tenant, ensured.branch, created=ensured.created, uris=ensured.connection_uris
        )

    async def _name_compute(self, tenant: Tenant, computes: Sequence[Endpoint]) -> None:
        """Name the compute of a new branch, because Neon accepts no name when it creates both."""
        if tenant.compute_name is None:
            return
        for compute in computes:
            if not compute.name:
                await self._neon.endpoints.update(
                    compute.project_id,
                    compute.id,
                    name=tenant.compute_name,
                    wait=self._wait_for_changes or False,
                )

    async def _connect(self, tenant: Tenant, project_id: str, endpoint_id: str | None) -> None:
        """Wait until the compute of an existing tenant accepts connections, if requested."""
        options = self._wait_for(tenant)
        if options is not None and options.connect and endpoint_id is not None:
            await self._neon.endpoints.wait_connectable(
                project_id, endpoint_id, timeout=options.timeout
            )

    async def _result(
        self,
        tenant: Tenant,
        branch: Branch,
        *,
        created: bool,
        uris: Sequence[ConnectionDetails] = (),
    ) -> TenantResult:
        """Return the result, with the URI from the creation, or else from another request."""
        uri: ConnectionUri | None = None
        if self._options.uris and tenant.compute:
            uri = _selected(tenant, uris) or await self._neon.branches.connection_uri(
                branch.project_id,
                branch.id,
                database_name=tenant.database,
                role_name=tenant.role,
            )
        if uri is not None and self._options.pooled:
            uri = uri.as_pooled()
        return TenantResult(
            tenant=tenant,
            project_id=branch.project_id,
            branch_id=branch.id,
            created=created,
            connection_uri=uri,
        )

    @property
    def _wait_for_changes(self) -> WaitOptions | None:
        """The wait options for a change, which needs no connection."""
        return self._options.wait and msgspec.structs.replace(self._options.wait, connect=False)

    def _wait_for(self, tenant: Tenant) -> WaitOptions | None:
        """Return the wait options for a tenant, which must not connect without a compute."""
        options = self._options.wait
        if options is None or tenant.compute or not options.connect:
            return options
        return msgspec.structs.replace(options, connect=False)


def _selected(tenant: Tenant, uris: Sequence[ConnectionDetails]) -> ConnectionUri | None:
    """Return the URI of the tenant's database and role, if a creation returned exactly one."""
    found = [
        each.connection_uri
        for each in uris
        if tenant.database in {None, each.connection_parameters.database}
        and tenant.role in {None, each.connection_parameters.role}
    ]
    return found[0] if len(found) == 1 else None


class LockedProjects:
    """The projects of a run that Neon may lock (423) while it creates a branch.

    The client repeats a rejected request only as long as its retry policy allows. A fleet needs
    longer: if Neon creates one branch after another, the last tenant of a project waits for all
    others.
    """

    def __init__(self) -> None:
        self._progress: dict[str, float] = {}
        """The time of the last success in each project."""

    async def repeat(self, project_id: str, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of ``work``. Repeat it while the project is locked.

        Raises LockedError if no work in the project has succeeded for ``MAX_LOCKED_SECONDS``.
        """
        time = asyncio.get_running_loop().time
        started = time()
        while True:
            try:
                result = await work()
            except LockedError:
                progress = max(started, self._progress.get(project_id, started))
                if time() - progress >= MAX_LOCKED_SECONDS:
                    raise
                await asyncio.sleep(LOCKED_PAUSE)
            else:
                self._progress[project_id] = time()
                return result
