"""A tenant: a platform of its own, with its accounts, its data and its faults."""

import math
from collections.abc import Sequence
from typing import Final, Self

from neonctl_async.local.engine import accounts, operations
from neonctl_async.local.engine.accounts import FirstAccount
from neonctl_async.local.engine.lifecycle import PLANNED_ERROR, Failure
from neonctl_async.local.server import routes
from neonctl_async.local.server.faults import Fault, InjectedFault
from neonctl_async.local.server.tenant_state import ServedRequest, TenantState
from neonctl_async.local.settings import check_action
from neonctl_async.local.storage.tables import MemberRole, PlannedFailure

PLANNED: Final = frozenset({"failed", "error", "cancelled", "skipped"})
"""The final statuses that an operation can be planned to have."""


class Tenant:
    """A platform of its own at a control plane's address: whoever has one of its keys is there.

    Nothing that is done in one tenant shows in another: no account, no project, no fault.
    """

    def __init__(self, state: TenantState) -> None:
        self._state = state
        self._home: FirstAccount | None = None

    async def sign_in(self) -> Self:
        """Find the first user, organization and key, or make them."""
        self._home = await self._state.database.run(accounts.ensure_first_account)
        return self

    @property
    def api_key(self) -> str:
        """The first key: a personal one of the first user, made at first start.

        A file holds only its hash, so it is not known again at the next start: keep it, or make
        another with :meth:`create_api_key`.
        """
        token = self.first_start_key
        if token is None:
            raise RuntimeError(
                "the first key was shown at first start only: make another with create_api_key()"
            )
        return token

    @property
    def first_start_key(self) -> str | None:
        """The first key if this start made it, ``None`` if an earlier one did."""
        return self._signed_in.api_key

    @property
    def user_id(self) -> str:
        """The first user."""
        return self._signed_in.user_id

    @property
    def org_id(self) -> str:
        """The first organization, of which the first user is an administrator."""
        return self._signed_in.org_id

    @property
    def requests(self) -> Sequence[ServedRequest]:
        """The requests that came in, newest last; the oldest of very many are forgotten."""
        return tuple(self._state.requests)

    @property
    def requests_served(self) -> int:
        """How many requests came in since the start."""
        return self._state.requests_served

    @property
    def faults(self) -> Sequence[InjectedFault]:
        """The faults in force, each with how often it fired."""
        return self._state.faults.injected

    def inject(self, fault: Fault) -> InjectedFault:
        """Put a fault in force; the answer counts how often it fires.

        Raises ValueError for a route that there is not.
        """
        if fault.route != "*":
            routes.check(fault.route)
        return self._state.faults.inject(fault)

    def clear_faults(self) -> None:
        """Take every fault away."""
        self._state.faults.clear()

    async def fail_next(
        self,
        action: str,
        *,
        times: int = 1,
        retry_after: float | None = None,
        status: str = "failed",
        error: str = PLANNED_ERROR,
    ) -> None:
        """Have the next operation of an action fail, or the next ``times`` of them.

        With ``retry_after`` seconds it shows a ``retry_at`` once it has failed, runs again then,
        and finishes. ``status`` is the final status otherwise. What comes after it in the same
        request does not start, and fails too. Raises ValueError for an action that no request
        starts here.
        """
        check_action(action)
        if status not in PLANNED:
            raise ValueError(f"status is {status!r}: one of {', '.join(sorted(PLANNED))}")
        if times < 1:
            raise ValueError(f"times is {times}: at least 1")
        if retry_after is not None and not 0 <= retry_after < math.inf:
            raise ValueError(f"retry_after is {retry_after}: a number of seconds, 0 or more")
        failure = Failure(status=status, error=error, retry_after=retry_after)
        await self._state.database.run(operations.fail_next, action, failure, times)

    async def planned_failures(self) -> Sequence[PlannedFailure]:
        """What :meth:`fail_next` planned, oldest first, each with how often it ``fired``."""
        return await self._state.database.run(operations.planned_failures)

    async def create_api_key(self, name: str, *, user_id: str | None = None) -> str:
        """A new personal key, as made in the console: of the first user unless another is given."""
        owner = user_id or self._signed_in.user_id
        return await self._state.database.run(accounts.create_api_key, owner, name)

    async def create_user(self, name: str, email: str) -> str:
        """Sign a user up; answers their id."""
        return (await self._state.database.run(accounts.create_user, name, email)).id

    async def create_organization(self, name: str, *, admin_id: str | None = None) -> str:
        """Found an organization, administered by the first user unless told; answers its id."""
        admin = admin_id or self._signed_in.user_id
        return (await self._state.database.run(accounts.create_organization, name, admin)).id

    async def add_member(self, org_id: str, user_id: str, role: MemberRole = "member") -> None:
        """Have a user join an organization, as ``"admin"`` or ``"member"``."""
        await self._state.database.run(accounts.add_member, org_id, user_id, role)

    async def remove_member(self, org_id: str, user_id: str) -> None:
        """Have a user leave an organization."""
        await self._state.database.run(accounts.remove_member, org_id, user_id)

    async def reset(self) -> None:
        """Forget everything but the first user, organization and key, which are as at first.

        The faults and planned failures go as well, and so do :attr:`requests`.
        """
        await self._state.database.run(accounts.reset_to_first_account)
        self._state.faults.clear()
        self._state.begin()

    @property
    def _signed_in(self) -> FirstAccount:
        if self._home is None:
            raise RuntimeError("the control plane was not started")
        return self._home
