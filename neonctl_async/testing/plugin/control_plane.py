"""The control plane of a test run, as a test sees it."""

from collections.abc import Sequence
from types import NoneType
from typing import TypeVar

from neonctl_async.client import NeonClient
from neonctl_async.errors import APIError
from neonctl_async.local import Fault, ServedRequest
from neonctl_async.local.engine.lifecycle import PLANNED_ERROR
from neonctl_async.local.storage.tables import MemberRole
from neonctl_async.testing.plugin import commands
from neonctl_async.testing.plugin.background_loop import BackgroundLoop
from neonctl_async.testing.plugin.commands import ActiveFault, Command, TenantAdded

T = TypeVar("T")


class ControlPlane:
    """A local control plane in a process of its own: what the fixture gives.

    ``base_url`` and ``api_key`` are for any client; ``user_id`` and ``org_id`` name the first user
    and organization. Everything else is awaited, on whatever event loop, and does what it does
    on a ``LocalControlPlane``. Raises ValueError for what cannot be planned.
    """

    def __init__(
        self,
        base_url: str,
        tenant: TenantAdded,
        console: NeonClient,
        background_loop: BackgroundLoop,
    ) -> None:
        self.base_url = base_url
        self.api_key: str = tenant.api_key
        self.user_id: str = tenant.user_id
        self.org_id: str = tenant.org_id
        self._path = f"/tenants/{tenant.number}"
        self._console = console
        self._background_loop = background_loop

    def __repr__(self) -> str:
        return f"<ControlPlane {self.base_url}>"

    async def inject(self, fault: Fault) -> None:
        """Put a fault in force, until the end of the test."""
        await self._ask(commands.Inject(fault), NoneType)

    async def faults(self) -> Sequence[ActiveFault]:
        """The faults in force, oldest first, each with how often it ``fired``."""
        return await self._ask(commands.Faults(), list[ActiveFault])

    async def clear_faults(self) -> None:
        """Take every fault away."""
        await self._ask(commands.ClearFaults(), NoneType)

    async def fail_next(
        self,
        action: str,
        *,
        times: int = 1,
        retry_after: float | None = None,
        status: str = "failed",
        error: str = PLANNED_ERROR,
    ) -> None:
        """Have the next operations of an action fail; see ``LocalControlPlane.fail_next``."""
        await self._ask(commands.FailNext(action, times, retry_after, status, error), NoneType)

    async def requests(self) -> Sequence[ServedRequest]:
        """The requests that came in since the test began, oldest first."""
        return await self._ask(commands.Requests(), list[ServedRequest])

    async def create_api_key(self, name: str, *, user_id: str | None = None) -> str:
        """A new personal key, of the first user unless another is given."""
        return await self._ask(commands.CreateApiKey(name, user_id), str)

    async def create_user(self, name: str, email: str) -> str:
        """Sign a user up; answers their id."""
        return await self._ask(commands.CreateUser(name, email), str)

    async def create_organization(self, name: str, *, admin_id: str | None = None) -> str:
        """Found an organization, administered by the first user unless told; answers its id."""
        return await self._ask(commands.CreateOrganization(name, admin_id), str)

    async def add_member(self, org_id: str, user_id: str, role: MemberRole = "member") -> None:
        """Have a user join an organization."""
        await self._ask(commands.AddMember(org_id, user_id, role), NoneType)

    async def remove_member(self, org_id: str, user_id: str) -> None:
        """Have a user leave an organization."""
        await self._ask(commands.RemoveMember(org_id, user_id), NoneType)

    async def reset(self) -> None:
        """Forget everything but the first user, organization and key. Done after each test."""
        await self._ask(commands.Reset(), NoneType)

    async def _ask(self, command: Command, answer: type[T]) -> T:
        return await self._background_loop.run(self.send(command, answer))

    async def send(self, command: Command, answer: type[T]) -> T:
        """Have a command carried out, from the loop of the console's client."""
        try:
            return await self._console.request("POST", self._path, body=command, type=answer)
        except APIError as error:
            if error.status == 400:
                raise ValueError(error.message) from None
            raise
