"""The requests for one tenant: ensure the branch, wait, get the connection URI."""

from collections.abc import Sequence

import msgspec

from neonctl_async.models.databases import ConnectionDetails
from neonctl_async.models.secret import Secret
from neonctl_async.provisioning.fleet.client import FleetClient
from neonctl_async.provisioning.fleet.errors import FleetError
from neonctl_async.provisioning.fleet.new_projects import NewProjects
from neonctl_async.provisioning.fleet.plans import PlannedTenant
from neonctl_async.provisioning.fleet.reports import TenantResult
from neonctl_async.provisioning.fleet.tenants import Tenant, or_unset
from neonctl_async.waiting.options import WaitOptions


class StepOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the work on a tenant."""

    wait: WaitOptions | None
    """None to return without waiting."""
    uris: bool
    """True to return connection URIs."""
    pooled: bool
    """True for connection URIs of the pooler."""


class TenantSteps:
    """Provisions one tenant at a time, without a journal: Neon's records are the state."""

    def __init__(self, neon: FleetClient, new_projects: NewProjects, options: StepOptions) -> None:
        self._neon = neon
        self._new_projects = new_projects
        self._options = options

    async def run(self, planned: PlannedTenant) -> TenantResult:
        """Provision a tenant. A ready tenant costs no request, unless a URI is needed."""
        if planned.differences:
            raise FleetError([f"{planned.tenant} differs: {', '.join(planned.differences)}"])
        if planned.is_ready and planned.project_id and planned.branch_id:
            await self._connect(planned.tenant, planned.project_id, planned.endpoint_id)
            return await self._result(planned.tenant, planned.project_id, planned.branch_id)
        return await self._ensure(planned)

    async def _ensure(self, planned: PlannedTenant) -> TenantResult:
        tenant = planned.tenant
        project_id = planned.project_id or await self._new_projects.id_of(tenant.project)
        ensured = await self._neon.branches.ensure(
            project_id,
            name=tenant.branch,
            parent=or_unset(tenant.parent),
            init_source=or_unset(tenant.init_source),
            protected=or_unset(tenant.protected),
            expires_at=or_unset(tenant.expires_at),
            endpoints=tenant.endpoints,
            wait=self._wait_for(tenant) or False,
        )
        return await self._result(
            tenant,
            project_id,
            ensured.branch.id,
            created=ensured.created,
            uris=ensured.connection_uris,
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
        project_id: str,
        branch_id: str,
        *,
        created: bool = False,
        uris: Sequence[ConnectionDetails] = (),
    ) -> TenantResult:
        uri: Secret | None = None
        if self._options.uris and tenant.compute:
            uri = None if self._options.pooled else _selected(tenant, uris)
            uri = uri or await self._neon.branches.connection_uri(
                project_id,
                branch_id,
                database_name=tenant.database,
                role_name=tenant.role,
                pooled=self._options.pooled,
            )
        return TenantResult(
            tenant=tenant,
            project_id=project_id,
            branch_id=branch_id,
            created=created,
            connection_uri=uri,
        )

    def _wait_for(self, tenant: Tenant) -> WaitOptions | None:
        """Return the options of the wait. A branch without a compute accepts no connections."""
        options = self._options.wait
        if options is None or tenant.compute or not options.connect:
            return options
        return msgspec.structs.replace(options, connect=False)


def _selected(tenant: Tenant, uris: Sequence[ConnectionDetails]) -> Secret | None:
    """Return the URI of the tenant's database and role, if a creation returned exactly one."""
    found = [
        each.connection_uri
        for each in uris
        if tenant.database in {None, each.connection_parameters.database}
        and tenant.role in {None, each.connection_parameters.role}
    ]
    return found[0] if len(found) == 1 else None
