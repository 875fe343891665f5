"""The branch methods that combine more than one request."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from uuid import uuid4

from msgspec import UNSET, UnsetType

from neonctl_async.clock import utc_now
from neonctl_async.models.branches import Branch, BranchCreated
from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.models.endpoints import EndpointSpec
from neonctl_async.provisioning.connection_uris import connection_uri
from neonctl_async.provisioning.deletion import delete_branch
from neonctl_async.provisioning.ensured import EnsuredBranch
from neonctl_async.provisioning.ensured_branches import BranchEnsurer, BranchRequest
from neonctl_async.provisioning.ephemeral import ephemeral_branch
from neonctl_async.provisioning.prune_plan import PruneReport
from neonctl_async.provisioning.readiness import wait_until_ready
from neonctl_async.resources.base import check_plain_function, check_within, checked_wait
from neonctl_async.resources.branch_data import NO_ENDPOINTS
from neonctl_async.resources.branches import Branches
from neonctl_async.resources.databases import Databases
from neonctl_async.resources.endpoints import Endpoints
from neonctl_async.resources.projects import Projects
from neonctl_async.waiting.options import Wait, WaitOptions, wait_options
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT

_MAX_TTL_SECONDS = 10 * 366 * 86400


class ProvisionedBranches(Branches):
    """Branches: every request of the API, and methods that combine requests."""

    async def connection_uri(
        self,
        project_id: str,
        branch_id: str,
        *,
        database_name: str | None = None,
        role_name: str | None = None,
        endpoint_id: str | None = None,
        pooled: bool = False,
    ) -> ConnectionUri:
        """Return the URI, password included, that connects to a database of a branch.

        - ``database_name``: by default, the only database of the branch.
        - ``role_name``: by default, the owner of the database.
        - ``endpoint_id``: by default, the read-write compute of the branch.
        - ``pooled``: connect through the pooler.

        Sends one request if both names are set, otherwise two. Raises ValueError, with the names,
        if the branch has more than one database and ``database_name`` is not set, or no such
        database.
        """
        return await connection_uri(
            Projects(self._requester),
            Databases(self._requester),
            project_id,
            branch_id,
            database_name=database_name,
            role_name=role_name,
            endpoint_id=endpoint_id,
            pooled=pooled,
        )

    def ephemeral(
        self,
        project_id: str,
        *,
        name: str | UnsetType = UNSET,
        name_prefix: str = "ephemeral",
        parent_id: str | UnsetType = UNSET,
        parent_lsn: str | UnsetType = UNSET,
        parent_timestamp: datetime | UnsetType = UNSET,
        init_source: str | UnsetType = UNSET,
        endpoints: Sequence[EndpointSpec] = (EndpointSpec(type="read_write"),),
        ttl_seconds: int | None = 3600,
        timeout: float | None = DEFAULT_TIMEOUT,
        connect: bool = False,
    ) -> AbstractAsyncContextManager[BranchCreated]:
        """Create a branch for an ``async with`` block, and delete it on exit.

        Creates the branch as :meth:`create` does and waits until it is ready. By default the
        branch has a read-write compute, and the block can connect to its ``connection_uri``. The
        deletion takes at most 30 seconds. Neither an error nor a cancellation prevents it.

        - ``name``: the name of the branch. By default, a generated name that starts with
          ``name_prefix``. If the response to the creation is lost, the client searches for the
          generated name and deletes the branch. It does not search for a name that you chose.
        - ``ttl_seconds``: Neon deletes the branch this many seconds after its creation, even if
          the process was killed. At least 1; None for accounts whose branches cannot expire.
        - ``timeout``: the longest wait until the branch is ready, in seconds; None for no limit.
        - ``connect``: also wait until the computes accept connections, within the same time.

        Raises the errors of the creation and of the wait. If the deletion fails, its error is
        raised (TimeoutError after 30 seconds), or added as a note to the error of the block.
        """
        options = WaitOptions(timeout=timeout, connect=connect)
        if connect and not endpoints:
            raise ValueError(f"connect=True requires a connection, but {NO_ENDPOINTS}")
        check_within(
            "ttl_seconds", UNSET if ttl_seconds is None else ttl_seconds, 1, _MAX_TTL_SECONDS
        )
        is_named = not isinstance(name, UnsetType)
        generated_name = f"{name_prefix}-{uuid4().hex[:12]}"

        async def create() -> BranchCreated:
            ttl = None if ttl_seconds is None else timedelta(seconds=ttl_seconds)
            return await self.create(
                project_id,
                name=name if is_named else generated_name,
                parent_id=parent_id,
                parent_lsn=parent_lsn,
                parent_timestamp=parent_timestamp,
                init_source=init_source,
                expires_at=UNSET if ttl is None else utc_now() + ttl,
                endpoints=endpoints,
            )

        async def finish(created: BranchCreated) -> BranchCreated:
            return await self._requester.finish(created, options)

        async def find() -> str | None:
            branches = await self.list(project_id, search=generated_name).collect()
            return next((branch.id for branch in branches if branch.name == generated_name), None)

        async def delete(branch_id: str) -> None:
            await delete_branch(self, project_id, branch_id)

        return ephemeral_branch(create, finish, None if is_named else find, delete)

    async def prune(
        self,
        project_id: str,
        *,
        name_prefix: str | None = None,
        pattern: str | None = None,
        names: Collection[str] | None = None,
        older_than: timedelta | None = None,
        idle_for: timedelta | None = None,
        apply: bool = False,
        report_all: bool = False,
        on_deleted: Callable[[Branch], object] | None = None,
        wait: Wait = False,
    ) -> PruneReport:
        """Delete the branches that meet all given criteria. By default, only report them.

        - ``name_prefix``: the start of the name.
        - ``pattern``: a pattern for the whole name, such as ``preview/pr-*``. ``*`` matches any
          text, ``?`` one character, and ``[…]`` one of some characters.
        - ``names``: the exact names, or the ids. An empty list selects no branch.
        - ``older_than``: the smallest age of the branch.
        - ``idle_for``: the smallest time since the branch was last created, changed or reset, or
          one of its computes was active. A branch with a running compute is not idle.
        - ``apply``: False for a dry run, which deletes nothing.
        - ``report_all``: report every branch that is kept, even if its name does not match.
        - ``on_deleted``: a plain function that is called with each deleted branch.
        - ``wait``: with ``apply``, wait for the operations of all deletions; see :meth:`create`.

        Default, protected and root branches are kept, and so is the parent of every kept branch.
        Ages are measured with the clock of the server. Children are deleted before their parents.
        Each branch is read again before its deletion, and kept if it has changed meanwhile.

        A deletion that fails stops no other deletion; the report lists it. After a cancellation,
        the CancelledError has a note with the deletions so far. Deleted branches can be recovered
        for seven days.

        Raises ValueError without any criterion.
        """
        from neonctl_async.provisioning.prune import Prune  # noqa: PLC0415 - few programs prune
        from neonctl_async.provisioning.prune_policy import PrunePolicy  # noqa: PLC0415 - few programs prune

        policy = PrunePolicy(
            name_prefix=name_prefix,
            pattern=pattern,
            names=names,
            older_than=older_than,
            idle_for=idle_for,
        )
        check_plain_function("on_deleted", on_deleted)
        prune = Prune(
            policy,
            project_id=project_id,
            branches=self,
            endpoints=Endpoints(self._requester),
            now=self._requester.waiter.server_now,
        )
        options = wait_options(wait)
        if options is not None and options.connect:
            raise ValueError("cannot wait for connections: a deletion leaves no compute: wait=True")

        async def finish(report: PruneReport) -> PruneReport:
            if options is None:
                return report
            return await self._requester.waiter.finish(report, options.timeout, options.on_update)

        report = await prune.plan(report_all=report_all)
        return await prune.apply(report, on_deleted, finish) if apply else report

    async def ensure(
        self,
        project_id: str,
        *,
        name: str,
        parent: str | UnsetType = UNSET,
        protected: bool | UnsetType = UNSET,
        init_source: str | UnsetType = UNSET,
        expires_at: datetime | UnsetType = UNSET,
        endpoints: Sequence[EndpointSpec] = (),
        annotation_value: Mapping[str, str] | UnsetType = UNSET,
        wait: Wait = False,
    ) -> EnsuredBranch:
        """Return the branch with this name. Create it if it does not exist.

        ``created`` of the result reports which of the two happened. Any number of processes may
        ensure the same branch at the same time, and repeat a call whose response was lost.

        ``parent`` is the name or the id of the parent branch, by default the default branch. The
        other settings are those of :meth:`create`. The call verifies an existing branch:

        - It is a child of ``parent``, and not the default branch.
        - It has the given ``protected``, and the given or default ``init_source``.
        - It has a compute with the given settings for each item of ``endpoints``. Other computes
          do not matter.
        - It expires if ``expires_at`` is given. If it would expire much earlier, the call postpones
          its expiry to ``expires_at``. It changes nothing else.

        ``annotation_value`` is written by a creation only. With ``wait``, the call returns when the
        branch and the given computes are ready, even if another process is creating them.

        Raises MismatchError if the branch exists, but differs. Raises NotFoundError if the parent
        does not exist. Otherwise, raises the errors of :meth:`create`.
        """
        options = checked_wait(wait, no_compute="" if endpoints else NO_ENDPOINTS)
        request = BranchRequest(
            project_id=project_id,
            name=name,
            parent=parent,
            protected=protected,
            init_source=init_source,
            expires_at=expires_at,
            endpoints=endpoints,
            annotation_value=annotation_value,
        )
        ensured = await BranchEnsurer(self._requester, request).run()
        return await wait_until_ready(self._requester, project_id, ensured, options)
