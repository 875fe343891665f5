"""The plan of a fleet, its progress and its outcome. Pure: no I/O."""

from collections import Counter
from typing import Literal, TypeAlias

import msgspec

from neonctl_async.errors import NeonError
from neonctl_async.models.branches import Branch
from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.provisioning.fleet.tenants import Tenant

Action: TypeAlias = Literal["create", "adopt", "update", "differ"]


class PlannedTenant(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about one tenant.

    ``create``: the branch does not exist. ``adopt``: it exists as described. ``update``: it exists
    with other settings, which ``apply(update=True)`` changes in place. ``differ``: it exists with
    settings that cannot be changed in place.
    """

    tenant: Tenant
    action: Action
    project_id: str | None = None
    """None if the fleet creates the project."""
    branch: Branch | None = None
    """The existing branch, if any."""
    is_ready: bool = False
    """True if the branch and its compute exist, and Neon has finished creating them."""
    differences: tuple[str, ...] = ()
    """A sentence for each setting that differs."""


class FleetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The decisions about all tenants. ``str()`` is a summary."""

    tenants: list[PlannedTenant]
    """The tenants of the projects that could be read, in the order of the fleet."""
    new_projects: list[str]
    """The names of the projects to create."""
    extra: list[Branch]
    """The branches of the fleet's projects that belong to no tenant. Default branches and parents
    of tenants are not extra."""
    failed: dict[Tenant, NeonError]
    """The tenants whose project could not be read, with the errors."""

    def select(self, action: Action) -> list[PlannedTenant]:
        """Return the tenants with this decision."""
        return [planned for planned in self.tenants if planned.action == action]

    def __str__(self) -> str:
        counts = Counter(planned.action for planned in self.tenants)
        parts = [f"{counts[action]} to {action}" for action in ("create", "adopt")]
        parts += [f"{counts['update']} to update"] if counts["update"] else []
        parts += [f"{counts['differ']} that differ", f"{len(self.extra)} extra"]
        if self.failed:
            parts.append(f"{len(self.failed)} in projects that cannot be read")
        count = len(self.new_projects)
        new = f"; {count} project{'s' if count > 1 else ''} to create" if count else ""
        total = len(self.tenants) + len(self.failed)
        return f"{total} {'tenant' if total == 1 else 'tenants'}: {', '.join(parts)}{new}"


class TenantResult(msgspec.Struct, frozen=True, kw_only=True):
    """A provisioned tenant."""

    tenant: Tenant
    project_id: str
    branch_id: str
    created: bool
    """True if this run created the branch, False if the branch existed."""
    updated: bool = False
    """True if this run changed settings of the branch or of its compute."""
    connection_uri: ConnectionUri | None = None
    """None if the tenant has no compute, or if no URIs were requested."""


class FleetUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one tenant, for ``on_update``."""

    tenant: Tenant
    result: TenantResult | None
    """None if the tenant failed."""
    error: Exception | None
    """The reason for the failure, or None."""
    finished: int
    """The number of tenants that have succeeded or failed so far, including this one."""
    total: int
    """The number of tenants in the fleet."""


class FleetReport(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of all tenants, in the order of the fleet. ``str()`` is a summary."""

    succeeded: dict[Tenant, TenantResult]
    failed: dict[Tenant, Exception]
    """The tenants that have failed. Run the fleet again to retry them."""
    skipped: list[Tenant]
    """The tenants that were not started, because a canary failed, Neon rejected the key or the
    client was closed."""

    @property
    def is_complete(self) -> bool:
        """True if every tenant has succeeded."""
        return not self.failed and not self.skipped

    def __str__(self) -> str:
        created = sum(result.created for result in self.succeeded.values())
        updated = sum(result.updated for result in self.succeeded.values())
        parts = [f"{created} created", f"{len(self.succeeded) - created - updated} adopted"]
        parts += [f"{updated} updated"] if updated else []
        parts += [f"{len(self.failed)} failed"] if self.failed else []
        parts += [f"{len(self.skipped)} skipped"] if self.skipped else []
        total = len(self.succeeded) + len(self.failed) + len(self.skipped)
        return f"{len(self.succeeded)} of {total} tenants are done: {', '.join(parts)}"
