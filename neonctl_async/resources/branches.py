"""Branches of a project."""

import builtins
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from operator import attrgetter
from typing import Final, Literal, Unpack, overload

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from neonctl_async.errors import LookupFailedError, NeonError
from neonctl_async.models.branches import (
    AnonymizedBranchStatus,
    Branch,
    BranchCreated,
    BranchDeleted,
    BranchesCount,
    BranchesPage,
    BranchRecovered,
    BranchResponse,
    BranchSchema,
    BranchSchemaComparison,
    BranchUpdated,
    MaskingRule,
    MaskingRulesResponse,
    NewBranch,
)
from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.models.databases import ConnectionDetails, ConnectionParameters
from neonctl_async.models.endpoints import Endpoint, EndpointsResponse
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import (
    NO_DELETED_COMPUTE,
    Resource,
    SortOrder,
    as_list,
    check_name,
    check_settings,
    check_within,
    checked_expiry,
    drop_unset,
)
from neonctl_async.resources.databases import DatabaseCalls, choose_database
from neonctl_async.resources.names import SAMPLE, Wanted
from neonctl_async.resources.projects import Projects
from neonctl_async.transport.protocol import request
from neonctl_async.waiting.states.sources import SEARCH_PAGE, BranchSource
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT, Wait

MAX_PAGE: Final = 10_000

_BRANCHES = "/projects/{project_id}/branches"
_BRANCH = f"{_BRANCHES}/{{branch_id}}"
_ANONYMIZED = "/projects/{project_id}/branch_anonymized"
_RULES = f"{_BRANCH}/masking_rules"
_NULLABLE: Final = ("expires_at",)
NO_ENDPOINTS: Final = (
    "the branch has no compute: pass endpoints=[EndpointSpec(type='read_write')], or use wait=True"
)
"""The reason why a creation without ``endpoints`` leaves no compute to connect to."""


class BranchCalls(Resource):
    """The API's branch endpoints."""

    def list(
        self,
        project_id: str,
        *,
        limit: int | UnsetType = UNSET,
        search: str | UnsetType = UNSET,
        sort_by: Literal["name", "created_at", "updated_at"] | UnsetType = UNSET,
        sort_order: SortOrder | UnsetType = UNSET,
        include_deleted: bool | UnsetType = UNSET,
    ) -> Paginator[Branch]:
        """List the branches of a project, by default the most recently updated first.

        ``limit`` is the page size, 1 to 10000. ``search`` is part of a name or id.
        ``include_deleted`` also lists deleted branches that can be recovered.
        """
        check_within("limit", limit, 1, MAX_PAGE)
        first = request(
            "GET",
            _BRANCHES,
            BranchesPage,
            project_id,
            query={
                "limit": limit,
                "search": search,
                "sort_by": sort_by,
                "sort_order": sort_order,
                "include_deleted": include_deleted,
            },
        )
        return self._paginate(first, _with_annotations, attrgetter("id"))

    async def count(self, project_id: str, *, search: str | UnsetType = UNSET) -> int:
        """Return the number of branches, or of branches whose name contains ``search``."""
        response = await self._send(
            "GET", f"{_BRANCHES}/count", BranchesCount, project_id, query={"search": search}
        )
        return response.count

    async def get(self, project_id: str, branch_id: str) -> Branch:
        """Return a branch."""
        response = await self._send("GET", _BRANCH, BranchResponse, project_id, branch_id)
        return replace(response.branch, annotation=response.annotation)

    async def default(self, project_id: str) -> Branch:
        """Return the default branch of a project.

        Lists the branches, oldest first, until it finds the default branch. Raises
        LookupFailedError if the project has none.
        """
        branches = self.list(project_id, limit=SEARCH_PAGE, sort_by="created_at", sort_order="asc")
        found = await _first(branches, lambda branch: branch.default)
        if found is None:
            raise LookupFailedError(f"project {project_id} has no default branch")
        return found

    async def find(self, project_id: str, name: str) -> Branch:
        """Return the branch with exactly this name. Sends one request.

        Raises LookupFailedError, suggesting other names, if the project has no such branch.
        """
        check_name("name", name)
        wanted = Wanted("branch", f"project {project_id}", name)
        branches = self.list(project_id, limit=MAX_PAGE, search=name)
        found = await _first(branches, lambda branch: branch.name == name)
        if found is None:
            sample = await self.list(project_id, limit=SAMPLE).collect(SAMPLE)
            raise LookupFailedError(wanted.missing(sample))
        return found

    async def create(
        self, project_id: str, *, wait: Wait = False, **settings: Unpack[NewBranch]
    ) -> BranchCreated:
        """Create a branch, with a compute for each item of ``endpoints``.

        Starts ``create_branch``, and ``start_compute`` for each compute. ``parent_lsn`` or
        ``parent_timestamp`` selects an earlier state of the parent. Neon chooses values for unset
        settings.

        With ``wait=True``, the call returns once all operations have succeeded, and waits up to 300
        seconds; a number sets another limit in seconds. ``wait="connect"`` also waits until the
        computes accept connections. :class:`~neonctl_async.WaitOptions` combines these options, and
        adds ``on_update``. The result then contains the final records of the operations, and a URI
        even if the parent has more than one role or database; call :meth:`get` for the current
        branch. If the wait fails with OperationFailedError, WaitTimeoutError or
        NotConnectableError, the error's ``result`` is the response.

        Raises ValueError for a datetime without a time zone, and for an ``expires_at`` more than 30
        days ahead, which Neon refuses.
        """
        body = self._new_branch(settings)
        created = await self._start(
            "POST",
            _BRANCHES,
            BranchCreated,
            project_id,
            body=body,
            wait=wait,
            no_compute="" if "endpoints" in body else NO_ENDPOINTS,
        )
        return created if wait is False else await with_uri(self, created)

    async def update(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str | UnsetType = UNSET,
        protected: bool | UnsetType = UNSET,
        expires_at: datetime | UnsetType | None = UNSET,
        wait: Wait = False,
    ) -> BranchUpdated:
        """Change a branch. Neon deletes it at ``expires_at``; None removes the expiry.

        Raises ValueError for an ``expires_at`` without a time zone, or more than 30 days ahead,
        which Neon refuses.
        """
        expires_at = checked_expiry(expires_at, self._runner.waiter.server_now())
        spec = drop_unset(_NULLABLE, name=name, protected=protected, expires_at=expires_at)
        return await self._start(
            "PATCH",
            _BRANCH,
            BranchUpdated,
            project_id,
            branch_id,
            body={"branch": spec},
            wait=wait,
            no_compute="the call does not change the computes of the branch: use wait=True",
        )

    async def set_as_default(
        self, project_id: str, branch_id: str, *, wait: Wait = False
    ) -> BranchUpdated:
        """Make a branch the default branch of its project."""
        return await self._start(
            "POST", f"{_BRANCH}/set_as_default", BranchUpdated, project_id, branch_id, wait=wait
        )

    async def restore(
        self,
        project_id: str,
        branch_id: str,
        *,
        source_branch_id: str,
        source_lsn: str | UnsetType = UNSET,
        source_timestamp: datetime | UnsetType = UNSET,
        preserve_under_name: str | UnsetType = UNSET,
        wait: Wait = False,
    ) -> BranchUpdated:
        """Restore a branch to the state of a source branch, which may be the branch itself.

        ``source_lsn`` or ``source_timestamp`` selects an earlier state of the source.
        ``preserve_under_name`` keeps the previous state as a new branch. It is required if the
        branch is its own source, or has children; the children move to the new branch.
        """
        body = drop_unset(
            source_branch_id=source_branch_id,
            source_lsn=source_lsn,
            source_timestamp=source_timestamp,
            preserve_under_name=preserve_under_name,
        )
        return await self._start(
            "POST", f"{_BRANCH}/restore", BranchUpdated, project_id, branch_id, body=body, wait=wait
        )

    async def reset_from_parent(
        self,
        project_id: str,
        branch_id: str,
        *,
        preserve_under_name: str | UnsetType = UNSET,
        wait: Wait = False,
    ) -> BranchUpdated:
        """Reset a branch to the current state of its parent.

        Reads the branch to find its parent, then calls :meth:`restore`. Raises ValueError if the
        branch has no parent.
        """
        branch = await self.get(project_id, branch_id)
        if branch.parent_id is None:
            raise ValueError(f"branch {branch_id} has no parent: a root branch cannot be reset")
        return await self.restore(
            project_id,
            branch_id,
            source_branch_id=branch.parent_id,
            preserve_under_name=preserve_under_name,
            wait=wait,
        )

    async def finalize_restore(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str | UnsetType = UNSET,
        wait: Wait = False,
    ) -> OperationsResponse:
        """Replace the original branch with a branch that was restored from its snapshot.

        The restored branch takes over the computes and the name of the original, which is renamed
        to ``name``. Until then, the restored branch may have only ``read_only`` computes.
        """
        body = drop_unset(name=name) or UNSET
        return await self._start(
            "POST",
            f"{_BRANCH}/finalize_restore",
            OperationsResponse,
            project_id,
            branch_id,
            body=body,
            wait=wait,
        )

    async def delete(
        self,
        project_id: str,
        branch_id: str,
        *,
        hard_delete: bool | UnsetType = UNSET,
        wait: Wait = False,
    ) -> BranchDeleted:
        """Delete a branch. It can be recovered for seven days, unless ``hard_delete`` is true.

        Unpublished: ``hard_delete`` is not in Neon's latest API description.

        Neon refuses to delete a root, default or protected branch, or a branch with children.
        """
        return await self._start(
            "DELETE",
            _BRANCH,
            BranchDeleted,
            project_id,
            branch_id,
            query={"hard_delete": hard_delete},
            wait=wait,
            no_compute=NO_DELETED_COMPUTE,
        )

    async def recover(self, project_id: str, branch_id: str) -> BranchRecovered:
        """Recover a deleted branch with its computes, which are suspended.

        Unpublished: this endpoint is not in Neon's latest API description.
        """
        return await self._send(
            "POST", f"{_BRANCH}/recover", BranchRecovered, project_id, branch_id
        )

    @overload
    async def wait_for(
        self,
        project_id: str,
        branch_id: str,
        state: Literal["deleted"],
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> None: ...

    @overload
    async def wait_for(
        self,
        project_id: str,
        branch_id: str,
        state: Literal["init", "ready", "archived"] = "ready",
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Branch: ...

    @overload
    async def wait_for(
        self,
        project_id: str,
        branch_id: str,
        state: str,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Branch | None: ...

    async def wait_for(
        self,
        project_id: str,
        branch_id: str,
        state: str = "ready",
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Branch | None:
        """Wait until a branch is in a state, no matter who changes it. Return the branch.

        A branch is ``deleted`` once Neon no longer finds it; the call then returns None. Any other
        state name is accepted. The wait continues while the branch is changing to another state.

        The wait reads the branch at once, and then at the delays of :class:`PollPolicy`, which
        start over whenever the state changes.

        Raises NotFoundError if the branch does not exist. Raises StateTimeoutError, with the latest
        state, after ``timeout`` seconds; None waits without limit.
        """
        source = BranchSource(project_id, branch_id)
        return await self._runner.states.wait_for(source, state, timeout)

    async def list_endpoints(self, project_id: str, branch_id: str) -> builtins.list[Endpoint]:
        """Return the computes of a branch."""
        response = await self._send(
            "GET", f"{_BRANCH}/endpoints", EndpointsResponse, project_id, branch_id
        )
        return response.endpoints

    async def schema(
        self,
        project_id: str,
        branch_id: str,
        *,
        db_name: str,
        lsn: str | UnsetType = UNSET,
        timestamp: datetime | UnsetType = UNSET,
        format: Literal["sql", "json"] | UnsetType = UNSET,
    ) -> BranchSchema:
        """Return the current schema of a database, or its schema at ``lsn`` or ``timestamp``."""
        return await self._send(
            "GET",
            f"{_BRANCH}/schema",
            BranchSchema,
            project_id,
            branch_id,
            query={"db_name": db_name, "lsn": lsn, "timestamp": timestamp, "format": format},
        )

    async def compare_schema(
        self,
        project_id: str,
        branch_id: str,
        *,
        db_name: str,
        lsn: str | UnsetType = UNSET,
        timestamp: datetime | UnsetType = UNSET,
        base_branch_id: str | UnsetType = UNSET,
        base_lsn: str | UnsetType = UNSET,
        base_timestamp: datetime | UnsetType = UNSET,
    ) -> BranchSchemaComparison:
        """Compare the schema of a database with its schema on another branch.

        The other branch is ``base_branch_id``, by default the parent branch. ``lsn`` or
        ``timestamp`` selects an earlier state of the branch. ``base_lsn`` or ``base_timestamp``
        selects an earlier state of the other branch.
        """
        return await self._send(
            "GET",
            f"{_BRANCH}/compare_schema",
            BranchSchemaComparison,
            project_id,
            branch_id,
            query={
                "db_name": db_name,
                "lsn": lsn,
                "timestamp": timestamp,
                "base_branch_id": base_branch_id,
                "base_lsn": base_lsn,
                "base_timestamp": base_timestamp,
            },
        )

    async def create_anonymized(
        self,
        project_id: str,
        *,
        masking_rules: Sequence[MaskingRule] | UnsetType = UNSET,
        start_anonymization: bool | UnsetType = UNSET,
        wait: Wait = False,
        **settings: Unpack[NewBranch],
    ) -> BranchCreated:
        """Create a branch for anonymized data. For the other settings, see :meth:`create`.

        With ``start_anonymization``, Neon applies the ``masking_rules`` immediately. Otherwise,
        call :meth:`anonymize` later.

        Beta: Neon may change this endpoint.
        """
        branch_create = self._new_branch(settings)
        annotation_value = branch_create.pop("annotation_value", UNSET)
        body = drop_unset(
            branch_create=branch_create or UNSET,
            annotation_value=annotation_value,
            masking_rules=as_list("masking_rules", masking_rules),
            start_anonymization=start_anonymization,
        )
        return await self._start(
            "POST",
            _ANONYMIZED,
            BranchCreated,
            project_id,
            body=body,
            wait=wait,
            no_compute="" if "endpoints" in branch_create else NO_ENDPOINTS,
        )

    async def list_masking_rules(
        self, project_id: str, branch_id: str
    ) -> builtins.list[MaskingRule]:
        """Return the masking rules of an anonymized branch.

        Beta: Neon may change this endpoint.
        """
        response = await self._send("GET", _RULES, MaskingRulesResponse, project_id, branch_id)
        return response.masking_rules

    async def update_masking_rules(
        self, project_id: str, branch_id: str, *, masking_rules: Sequence[MaskingRule]
    ) -> builtins.list[MaskingRule]:
        """Replace the masking rules of an anonymized branch, and return the new rules.

        Each rule contains either a function or a value. :meth:`anonymize` applies the rules.

        Beta: Neon may change this endpoint.
        """
        body = drop_unset(masking_rules=as_list("masking_rules", masking_rules))
        response = await self._send(
            "PATCH", _RULES, MaskingRulesResponse, project_id, branch_id, body=body
        )
        return response.masking_rules

    async def anonymized_status(self, project_id: str, branch_id: str) -> AnonymizedBranchStatus:
        """Return the progress of an anonymization.

        An anonymization is not an operation: to wait until it is done, call this method repeatedly.

        Beta: Neon may change this endpoint.
        """
        return await self._send(
            "GET", f"{_BRANCH}/anonymized_status", AnonymizedBranchStatus, project_id, branch_id
        )

    async def anonymize(self, project_id: str, branch_id: str) -> AnonymizedBranchStatus:
        """Apply the masking rules to an anonymized branch. You can call this more than once.

        Beta: Neon may change this endpoint.
        """
        return await self._send(
            "POST", f"{_BRANCH}/anonymize", AnonymizedBranchStatus, project_id, branch_id
        )

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
        """Return the URI, including the password, that connects to a database of a branch.

        - ``database_name``: by default, the only database of the branch.
        - ``role_name``: by default, the owner of the database.
        - ``endpoint_id``: by default, the read-write compute of the branch.
        - ``pooled``: connect through the pooler.

        Sends one request if both names are set, otherwise two. Raises LookupFailedError, listing
        the databases, if the branch has no such database, and ValueError if ``database_name`` is
        not set and there is more than one.
        """
        if database_name is None or role_name is None:
            # Not databases.get(): the error for an unknown name lists the databases.
            listed = await DatabaseCalls(self._runner).list(project_id, branch_id)
            database = choose_database(branch_id, listed, database_name)
            database_name, role_name = database.name, role_name or database.owner_name
        return await Projects(self._runner).connection_uri(
            project_id,
            branch_id=branch_id,
            database_name=database_name,
            role_name=role_name,
            endpoint_id=UNSET if endpoint_id is None else endpoint_id,
            pooled=pooled,
        )

    def _new_branch(self, settings: NewBranch) -> dict[str, object]:
        """Return the body of a request that creates a branch."""
        check_settings(NewBranch, settings)
        endpoints = as_list("endpoints", settings.get("endpoints", ())) or UNSET
        branch = drop_unset(**{**settings, "endpoints": UNSET})
        if "expires_at" in settings:
            expires_at = checked_expiry(settings["expires_at"], self._runner.waiter.server_now())
            branch |= drop_unset(expires_at=expires_at)
        annotation_value = branch.pop("annotation_value", UNSET)
        return drop_unset(
            branch=branch or UNSET, endpoints=endpoints, annotation_value=annotation_value
        )


async def with_uri(branches: BranchCalls, created: BranchCreated) -> BranchCreated:
    """Return the response to the creation of a branch, with a URI if the branch has a compute.

    Neon leaves the URIs out if the parent has more than one role or database. In that case, this
    requests the URI of the first database. If the request fails, the response is returned
    unchanged.
    """
    if created.connection_uris or not (created.endpoints and created.databases):
        return created
    compute, database = created.endpoints[0], created.databases[0]
    try:
        uri = await branches.connection_uri(
            compute.project_id,
            compute.branch_id,
            database_name=database.name,
            role_name=database.owner_name,
            endpoint_id=compute.id,
        )
    except NeonError:  # the branch exists, and its connection_uri says what to call
        return created
    parameters = ConnectionParameters(
        database=database.name,
        role=database.owner_name,
        host=compute.host,
        password=uri.password,
        pooler_host=compute.host.replace(compute.id, f"{compute.id}-pooler", 1),
    )
    details = ConnectionDetails(connection_uri=uri, connection_parameters=parameters)
    return replace(created, connection_uris=[details])


async def _first(branches: Paginator[Branch], is_wanted: Callable[[Branch], bool]) -> Branch | None:
    """Return the first branch that ``is_wanted`` accepts, or None. Read no further pages."""
    async with aclosing(branches.pages()) as pages:
        async for page in pages:
            for branch in page:
                if is_wanted(branch):
                    return branch
    return None


def _with_annotations(page: BranchesPage) -> list[Branch]:
    return [replace(branch, annotation=page.annotations.get(branch.id)) for branch in page.branches]
