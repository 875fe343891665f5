"""A tenant: separate accounts, data and faults at the address of a local control plane."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from neonctl_local.engine import accounts, invitations, operations
from neonctl_local.engine.accounts import FirstAccount
from neonctl_local.engine.lifecycle import PLANNED_ERROR
from neonctl_local.errors import ApiError
from neonctl_local.server import routes
from neonctl_local.server.faults import FailNext, Fault, InjectedFault
from neonctl_local.server.served_request import ServedRequest
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.storage.tables import MemberRole, PlannedFailure

if TYPE_CHECKING:
    from neonctl_local.server.tenants.databases import TenantDatabases


class Tenant:
    """A tenant of a local control plane. The API key of a request selects its tenant.

    Tenants do not share accounts, projects or faults.
    """

    def __init__(self, state: TenantState) -> None:
        self._state = state
        self._home: FirstAccount | None = None

    async def sign_in(self) -> Self:
        """Create the first user, organization and key, or load them."""
        database = self._state.database
        # Read first: an existing file can be served while its disk is full.
        self._home = await database.read(accounts.first_account)
        if self._home is None:
            try:
                self._home = await database.run(accounts.ensure_first_account)
            except ApiError as error:
                raise RuntimeError(f"cannot store the first account: {error}") from error
        return self

    @property
    def api_key(self) -> str:
        """The first API key: a personal key of the first user, created at the first start.

        A data file holds only the hash of the key, so after a restart this property raises
        RuntimeError: store the key, or create another with :meth:`create_api_key`.
        """
        token = self.first_start_key
        if token is None:
            raise RuntimeError(
                "the data file contains only a hash of the first API key, which the first start "
                "created: create another key with create_api_key()"
            )
        return token

    @property
    def first_start_key(self) -> str | None:
        """The first API key if this start created it, else ``None``."""
        return self._signed_in.api_key

    @property
    def user_id(self) -> str:
        """The id of the first user."""
        return self._signed_in.user_id

    @property
    def org_id(self) -> str:
        """The id of the first organization. The first user is an administrator of it."""
        return self._signed_in.org_id

    @property
    def requests(self) -> Sequence[ServedRequest]:
        """The last 10,000 requests that the tenant received, newest last."""
        return tuple(self._state.requests)

    @property
    def requests_served(self) -> int:
        """The number of requests since the start or the last :meth:`reset`."""
        return self._state.requests_served

    @property
    def faults(self) -> Sequence[InjectedFault]:
        """The active faults, each with the number of times that it has fired."""
        return self._state.faults.injected

    def inject(self, fault: Fault) -> InjectedFault:
        """Activate a fault. The result counts how often the fault fires.

        Raises ValueError if the fault's route does not exist.
        """
        routes.check(fault.route)
        return self._state.faults.inject(fault)

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._state.faults.clear()

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
        """Make the next ``times`` operations of an action fail with ``status`` and ``error``.

        The first ``after`` operations are skipped. With ``branch``, the name or the id of a branch,
        only its operations count.

        With ``retry_after`` (seconds), a failed operation shows ``retry_at``, runs again at that
        time, and finishes. With ``show_retry_at=False`` it does the same, but without showing
        ``retry_at``, as if the failure were final. Without ``retry_after``, the failure is final,
        and later operations of the same request fail without starting.

        Raises ValueError for an unknown action, a status that is not a failure, a number out of
        range, or ``show_retry_at=False`` without ``retry_after``.
        """
        plan = FailNext(
            action=action,
            times=times,
            after=after,
            branch=branch,
            retry_after=retry_after,
            show_retry_at=show_retry_at,
            status=status,
            error=error,
        )
        await self._state.database.run(operations.fail_next, action, plan, times, after, branch)

    async def planned_failures(self) -> Sequence[PlannedFailure]:
        """Return the failures that :meth:`fail_next` planned, oldest first, with their counts."""
        return await self._state.database.run(operations.planned_failures)

    async def create_api_key(self, name: str, *, user_id: str | None = None) -> str:
        """Create a personal API key and return its token. The default owner is the first user."""
        owner = user_id or self._signed_in.user_id
        # Without a key, nobody can delete anything on a full disk.
        return await self._state.database.spend(accounts.create_api_key, owner, name)

    async def create_user(self, name: str, email: str) -> str:
        """Create a user, who joins the organizations that invited this address, and return the id.

        Raises ApiError 409 if the email address is taken.
        """
        return (await self._state.database.run(invitations.sign_up, name, email)).id

    async def create_organization(self, name: str, *, admin_id: str | None = None) -> str:
        """Create an organization and return its id. The default administrator is the first user."""
        admin = admin_id or self._signed_in.user_id
        return (await self._state.database.run(accounts.create_organization, name, admin)).id

    async def add_member(self, org_id: str, user_id: str, role: MemberRole = "member") -> None:
        """Add a user to an organization, as ``"admin"`` or ``"member"``."""
        await self._state.database.run(accounts.add_member, org_id, user_id, role)

    async def remove_member(self, org_id: str, user_id: str) -> None:
        """Remove a user from an organization."""
        await self._state.database.run(accounts.remove_member, org_id, user_id)

    async def save(self, shared: Sequence[str] = ()) -> None:
        """Make the current data the state to which :meth:`reset` returns.

        A reset leaves the real databases of ``shared`` branches and their connections alone.

        Raises ValueError while operations are doing real work: wait for them first.
        """
        if self._state.databases is not None:
            await self._state.databases.save(shared)
        await self._state.database.save()

    async def reset(self) -> None:
        """Return to the data of the last :meth:`save`, and delete faults and recorded requests.

        If nothing was saved, delete all data except the first user, organization and key, which
        return to their initial state. Real databases are part of the data.
        """
        if self._state.databases is None:
            await self._restore()
        else:
            await self._state.databases.replace(self._restore)
        self._state.faults.clear()
        self._state.clear_requests()

    async def _restore(self) -> None:
        if not await self._state.database.restore():
            await self._state.database.run(accounts.reset_to_first_account)

    async def prepare_branches(self, branch_id: str, count: int) -> None:
        """Keep ``count`` running copies of a branch's real database ready for new child branches.

        The copies are made in the background while the computes of the branch are idle.
        """
        await self._real_databases.prepare(branch_id, count)

    async def publish_template(self, branch_id: str) -> str:
        """Copy the real database of a branch to a template for all tenants. Return its id."""
        return await self._real_databases.publish_template(branch_id)

    async def load_template(self, key: str) -> str:
        """Return the id of a template in the user's cache, or an empty string if there is none.

        ``key`` is a SHA-256 hash in hexadecimal. The cache holds one template for each key and
        version of Postgres. The caller must hold ``template_lock(key)``.
        """
        return await self._real_databases.load_template(key)

    async def keep_template(self, template: str, key: str) -> str:
        """Keep a template in the user's cache, for :meth:`load_template` in later runs.

        Return an empty string if this succeeds, or the reason if it fails.
        """
        return await self._real_databases.keep_template(template, key)

    async def use_template(self, template: str | None, *, is_last: bool = False) -> None:
        """Make new projects start with the content of a template; None means an empty database.

        With ``is_last``, the next project gets the template itself instead of a copy, and no other
        project can use it. Raise ValueError for the id of a branch.
        """
        self._real_databases.use_template(template, is_last=is_last)

    @property
    def _real_databases(self) -> "TenantDatabases":
        if self._state.databases is None:
            raise ValueError("the local control plane has no real databases: pass postgres=True")
        return self._state.databases

    @property
    def _signed_in(self) -> FirstAccount:
        if self._home is None:
            raise RuntimeError("the local control plane was not started: start it first")
        return self._home
