"""What a test may ask of a tenant in another process: each a Struct that goes to JSON and back."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from neonctl_async.local import Fault, ServedRequest, Tenant
from neonctl_async.local.storage.tables import MemberRole


class ActiveFault(msgspec.Struct, frozen=True):
    """A planned fault, and how often it ``fired``."""

    fault: Fault
    fired: int


class Reset(msgspec.Struct, frozen=True, tag=True):
    """See ``Tenant.reset``."""

    async def carry_out(self, tenant: Tenant) -> None:
        """What the tenant answers."""
        await tenant.reset()


class Inject(msgspec.Struct, frozen=True, tag=True):
    """See ``Tenant.inject``."""

    fault: Fault

    async def carry_out(self, tenant: Tenant) -> None:
        """What the tenant answers."""
        tenant.inject(self.fault)


class Faults(msgspec.Struct, frozen=True, tag=True):
    """See ``Tenant.faults``."""

    async def carry_out(self, tenant: Tenant) -> list[ActiveFault]:
        """What the tenant answers."""
        return [ActiveFault(injected.fault, injected.fired) for injected in tenant.faults]


class ClearFaults(msgspec.Struct, frozen=True, tag=True):
    """See ``Tenant.clear_faults``."""

    async def carry_out(self, tenant: Tenant) -> None:
        """What the tenant answers."""
        tenant.clear_faults()


class FailNext(msgspec.Struct, frozen=True, tag=True):
    """See ``Tenant.fail_next``."""

    action: str
    times: int
    retry_after: float | None
    status: str
    error: str

    async def carry_out(self, tenant: Tenant) -> None:
        """What the tenant answers."""
        await tenant.fail_next(
            self.action,
            times=self.times,
            retry_after=self.retry_after,
            status=self.status,
            error=self.error,
        )


class Requests(msgspec.Struct, frozen=True, tag=True):
    """See ``Tenant.requests``."""

    async def carry_out(self, tenant: Tenant) -> Sequence[ServedRequest]:
        """What the tenant answers."""
        return tenant.requests


class CreateApiKey(msgspec.Struct, frozen=True, tag=True):
    """See ``Tenant.create_api_key``."""

    name: str
    user_id: str | None

    async def carry_out(self, tenant: Tenant) -> str:
        """What the tenant answers."""
        return await tenant.create_api_key(self.name, user_id=self.user_id)


class CreateUser(msgspec.Struct, frozen=True, tag=True):
    """See ``Tenant.create_user``."""

    name: str
    email: str

    async def carry_out(self, tenant: Tenant) -> str:
        """What the tenant answers."""
        return await tenant.create_user(self.name, self.email)


class CreateOrganization(msgspec.Struct, frozen=True, tag=True):
    """See ``Tenant.create_organization``."""

    name: str
    admin_id: str | None

    async def carry_out(self, tenant: Tenant) -> str:
        """What the tenant answers."""
        return await tenant.create_organization(self.name, admin_id=self.admin_id)


class AddMember(msgspec.Struct, frozen=True, tag=True):
    """See ``Tenant.add_member``."""

    org_id: str
    user_id: str
    role: MemberRole

    async def carry_out(self, tenant: Tenant) -> None:
        """What the tenant answers."""
        await tenant.add_member(self.org_id, self.user_id, self.role)


class RemoveMember(msgspec.Struct, frozen=True, tag=True):
    """See ``Tenant.remove_member``."""

    org_id: str
    user_id: str

    async def carry_out(self, tenant: Tenant) -> None:
        """What the tenant answers."""
        await tenant.remove_member(self.org_id, self.user_id)


Command: TypeAlias = (
    Reset
    | Inject
    | Faults
    | ClearFaults
    | FailNext
    | Requests
    | CreateApiKey
    | CreateUser
    | CreateOrganization
    | AddMember
    | RemoveMember
)


class TenantAdded(msgspec.Struct, frozen=True):
    """A tenant that was added: its number, and what its user is told."""

    number: int
    api_key: str
    user_id: str
    org_id: str

    def __repr__(self) -> str:
        return f"<TenantAdded {self.number}>"
