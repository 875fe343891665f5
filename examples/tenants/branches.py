"""The branches of the tenants, which are also the list of tenants."""

from neonctl_async import ConnectionUri, EndpointSpec, NeonClient, NotFoundError, WaitOptions
from neonctl_async.types import Branch

PREFIX = "tenant/"
"""The prefix of the tenants' branch names. No other branch of the project may use it."""
DELETION = {"suspend_compute", "delete_timeline"}
"""The actions of the operations that delete a branch."""
SECONDS = 60.0
"""The longest time that signing up or off may take."""


class UnknownTenantError(Exception):
    """The project has no branch for this tenant."""


class TenantBranches:
    """Creates, finds and deletes the branches of the tenants."""

    def __init__(self, neon: NeonClient, project_id: str) -> None:
        self._neon = neon
        self._project_id = project_id

    async def ensure(self, tenant: str) -> bool:
        """Create or adopt a tenant's branch. Return True if it was created."""
        ensured = await self._neon.branches.ensure(
            self._project_id,
            name=PREFIX + tenant,
            endpoints=[EndpointSpec(type="read_write")],
            wait=WaitOptions(timeout=SECONDS, connect=True),
        )
        return ensured.created

    async def connection_uri(self, tenant: str) -> ConnectionUri:
        """Return a tenant's connection URI. Raises UnknownTenantError."""
        branch = await self._find(tenant)
        try:
            return await self._neon.branches.connection_uri(self._project_id, branch.id)
        except NotFoundError:  # deleted after it was found
            raise UnknownTenantError(tenant) from None

    async def delete(self, tenant: str) -> None:
        """Delete a tenant's branch, if there is one, and wait for the operations.

        Until they have finished, other workers could still use the database.
        """
        try:
            branch = await self._find(tenant)
            await self._neon.branches.delete(self._project_id, branch.id, wait=SECONDS)
        except (UnknownTenantError, NotFoundError):
            await self._finish_deletions()

    async def tenants(self) -> list[str]:
        """Return the names of all tenants."""
        branches = self._neon.branches.list(self._project_id, search=PREFIX, limit=1000)
        names = [branch.name async for branch in branches]
        return sorted(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))

    async def _finish_deletions(self) -> None:
        """Wait for deletions that earlier requests started. Their branches are no longer listed."""
        newest = await self._neon.operations.list(self._project_id, limit=100).collect(100)
        deletions = [operation for operation in newest if operation.action in DELETION]
        if deletions:
            await self._neon.operations.wait(deletions, timeout=SECONDS, raise_on_failure=False)

    async def _find(self, tenant: str) -> Branch:
        try:
            return await self._neon.branches.find(self._project_id, PREFIX + tenant)
        except LookupError:
            raise UnknownTenantError(tenant) from None
