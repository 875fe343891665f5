"""The result of a fleet, and the progress towards it."""

import msgspec

from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.provisioning.fleet.tenants import Tenant


class TenantResult(msgspec.Struct, frozen=True, kw_only=True):
    """A provisioned tenant."""

    tenant: Tenant
    project_id: str
    branch_id: str
    created: bool
    """True if this run created the branch, False if the branch existed."""
    connection_uri: ConnectionUri | None = None
    """None without a compute, or if the URIs were not requested."""


class FleetUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the work on one tenant, for ``on_update``."""

    tenant: Tenant
    result: TenantResult | None
    """None if the tenant has failed."""
    error: Exception | None
    """The reason of the failure, or None."""
    finished: int
    """The number of tenants that have succeeded or failed so far, this one included."""
    total: int
    """The number of tenants of the fleet."""


class FleetReport(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of all tenants, in the order of the fleet. ``str()`` is a summary."""

    succeeded: dict[Tenant, TenantResult]
    failed: dict[Tenant, Exception]
    """The tenants that have failed. Run the fleet again to retry them."""
    skipped: list[Tenant]
    """The tenants that were not started, because the canary failed or Neon rejected the key."""

    @property
    def is_complete(self) -> bool:
        """True if every tenant has succeeded."""
        return not self.failed and not self.skipped

    def __str__(self) -> str:
        created = sum(result.created for result in self.succeeded.values())
        parts = [f"{created} created", f"{len(self.succeeded) - created} adopted"]
        parts += [f"{len(self.failed)} failed"] if self.failed else []
        parts += [f"{len(self.skipped)} skipped"] if self.skipped else []
        total = len(self.succeeded) + len(self.failed) + len(self.skipped)
        return f"{len(self.succeeded)} of {total} tenants are done: {', '.join(parts)}"
