"""The interface of tests to the local control plane of their test run."""

from collections.abc import Sequence
from types import NoneType
from typing import Literal, TypeVar

from neonctl_async import APIError, NeonClient
from neonctl_local import PLANNED_ERROR, Fault, ServedRequest
from pytest_neonctl_async.background_loop import BackgroundLoop
from pytest_neonctl_async.tenant_records import ActiveFault, TenantAdded

T = TypeVar("T")


class TenantClient:
    """Calls the methods of one tenant through a client of the control server."""

    def __init__(self, control: NeonClient, number: int) -> None:
        self._control = control
        self._path = f"/tenants/{number}"

    async def call(self, name: str, result: type[T], /, **arguments: object) -> T:
        """Call a method of the tenant by name, on the event loop of the client.

        Raise ValueError if the method does not exist, or if it refuses an argument.
        """
        body = {"name": name, "arguments": arguments}
        try:
            return await self._control.request("POST", self._path, body=body, type=result)
        except APIError as error:
            if error.status == 400:
                raise ValueError(error.message) from None
            raise


class ControlPlane:
    """The value of the ``neon_control_plane`` fixture: a local control plane in its own process.

    Pass ``base_url`` and ``api_key`` to any client. ``user_id`` and ``org_id`` are the first user
    and organization. The methods run on any event loop, and do what the methods of
    ``LocalControlPlane`` do. They raise ValueError for an invalid argument.
    """

    def __init__(
        self, base_url: str, added: TenantAdded, tenant: TenantClient, loop: BackgroundLoop
    ) -> None:
        self.base_url = base_url
        self.api_key: str = added.api_key
        self.user_id: str = added.user_id
        self.org_id: str = added.org_id
        self._tenant = tenant
        self._loop = loop

    def __repr__(self) -> str:
        return f"<ControlPlane {self.base_url}>"

    async def inject(self, fault: Fault) -> None:
        """Activate a fault until the end of the test."""
        await self._call("inject", ActiveFault, fault=fault)

    async def faults(self) -> Sequence[ActiveFault]:
        """Return the active faults, oldest first. ``fired`` counts the requests each changed."""
        return await self._call("faults", list[ActiveFault])

    async def clear_faults(self) -> None:
        """Remove every fault."""
        await self._call("clear_faults", NoneType)

    async def fail_next(
        self,
        action: str,
        *,
        times: int = 1,
        after: int = 0,
        branch: str | None = None,
        retry_after: float | None = None,
        show_retry_at: bool = True,
        status: str = "failed",
        error: str = PLANNED_ERROR,
    ) -> None:
        """Make the next ``times`` operations of an action fail.

        See ``LocalControlPlane.fail_next``; ``retry_after`` is in seconds.
        """
        await self._call(
            "fail_next",
            NoneType,
            action=action,
            times=times,
            after=after,
            branch=branch,
            retry_after=retry_after,
            show_retry_at=show_retry_at,
            status=status,
            error=error,
        )

    async def requests(self) -> Sequence[ServedRequest]:
        """Return the requests that were received since the start of the test, oldest first."""
        return await self._call("requests", list[ServedRequest])

    async def create_api_key(self, name: str, *, user_id: str | None = None) -> str:
        """Create a personal API key, for the first user by default. Return the key."""
        return await self._call("create_api_key", str, name=name, user_id=user_id)

    async def create_user(self, name: str, email: str) -> str:
        """Create a user. Return the id."""
        return await self._call("create_user", str, name=name, email=email)

    async def create_organization(self, name: str, *, admin_id: str | None = None) -> str:
        """Create an organization, with the first user as its admin by default. Return the id."""
        return await self._call("create_organization", str, name=name, admin_id=admin_id)

    async def add_member(
        self, org_id: str, user_id: str, role: Literal["admin", "member"] = "member"
    ) -> None:
        """Add a user to an organization."""
        await self._call("add_member", NoneType, org_id=org_id, user_id=user_id, role=role)

    async def remove_member(self, org_id: str, user_id: str) -> None:
        """Remove a user from an organization."""
        await self._call("remove_member", NoneType, org_id=org_id, user_id=user_id)

    async def reset(self) -> None:
        """Return to the state before the first test. The plugin does this after each test.

        Only the first user, organization and key remain and, with databases, the worker's project.
        """
        await self._call("reset", NoneType)

    async def _call(self, name: str, result: type[T], /, **arguments: object) -> T:
        return await self._loop.run(self._tenant.call(name, result, **arguments))
