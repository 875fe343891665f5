"""The requests that read the state of a branch, a compute or a project."""

from collections.abc import Awaitable, Hashable
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from neonctl_async._internal import shorten
from neonctl_async.errors import InvalidResponseError
from neonctl_async.models.branches import Branch, BranchesPage, BranchResponse
from neonctl_async.models.endpoints import Endpoint, EndpointResponse
from neonctl_async.models.operations import Operation
from neonctl_async.models.projects import Project, ProjectResponse
from neonctl_async.transport.encoding.paths import path_segment
from neonctl_async.transport.protocol import Request, request
from neonctl_async.waiting.scan import MAX_PAGE
from neonctl_async.waiting.source import check_page, page_request
from neonctl_async.waiting.states.observed import (
    DELETED,
    ObservedState,
    branch_rank,
    compute_rank,
    pending_of,
    project_rank,
)

T = TypeVar("T")
RecordT = TypeVar("RecordT")

NEWEST_OPERATIONS = 100
"""Number of a project's newest operations that are searched for pending ones."""
_SEARCH_PAGE = 100
"""The number of branches per page when searching for the default branch."""
_MISSING = "init"
"""The state of a project whose default branch does not exist yet."""
_BUSY = "busy"
"""The state of a project whose default branch is ready, but has pending operations."""


class Polls(Protocol):
    """Sends requests as polls."""

    def poll(self, request: Request[T]) -> Awaitable[T]:
        """Send ``request`` when the rate budget allows it, and return its response."""
        ...

    def server_now(self) -> datetime:
        """Return the time on Neon's clock."""
        ...


class StateSource(Hashable, Protocol[RecordT]):
    """Reads the state of one object. Equal sources read the same object in the same way."""

    @property
    def project_id(self) -> str:
        """The project of the object."""
        ...

    @property
    def id(self) -> str:
        """The id of the object."""
        ...

    def __str__(self) -> str:
        """Describe the object for messages."""
        ...

    async def read(self, polls: Polls, /) -> ObservedState[RecordT]:
        """Return the current state. Raises NotFoundError if the object does not exist."""
        ...

    def rank(self, operation: Operation, observed: ObservedState[RecordT], /) -> int | None:
        """Return how closely an operation belongs to the object. See :data:`Rank`."""
        ...


class BranchSource(msgspec.Struct, frozen=True):
    """Reads a branch."""

    project_id: str
    id: str

    def __post_init__(self) -> None:
        path_segment("project_id", self.project_id)
        path_segment("branch_id", self.id)

    def __str__(self) -> str:
        return f"branch {self.id} in {self.project_id}"

    async def read(self, polls: Polls) -> ObservedState[Branch]:
        """Return the current state of the branch."""
        get = request(
            "GET",
            "/projects/{project_id}/branches/{branch_id}",
            BranchResponse,
            self.project_id,
            self.id,
        )
        response = await polls.poll(get)
        branch = response.branch
        _check_id(get, "branch", branch.id, self.id)
        return ObservedState(
            state=branch.current_state if branch.recovery is None else DELETED,
            pending_state=branch.pending_state,
            updated_at=branch.updated_at,
            record=msgspec.structs.replace(branch, annotation=response.annotation),
            branch_id=branch.id,
        )

    def rank(self, operation: Operation, _observed: ObservedState[Branch]) -> int | None:
        """Rank the operations of the branch."""
        return branch_rank(operation, self.id)


class ComputeSource(msgspec.Struct, frozen=True):
    """Reads a compute."""

    project_id: str
    id: str

    def __post_init__(self) -> None:
        path_segment("project_id", self.project_id)
        path_segment("endpoint_id", self.id)

    def __str__(self) -> str:
        return f"compute {self.id} in {self.project_id}"

    async def read(self, polls: Polls) -> ObservedState[Endpoint]:
        """Return the current state of the compute."""
        get = request(
            "GET",
            "/projects/{project_id}/endpoints/{endpoint_id}",
            EndpointResponse,
            self.project_id,
            self.id,
        )
        endpoint = (await polls.poll(get)).endpoint
        _check_id(get, "compute", endpoint.id, self.id)
        return ObservedState(
            state=endpoint.current_state.value,
            pending_state=endpoint.pending_state and endpoint.pending_state.value,
            updated_at=endpoint.updated_at,
            record=endpoint,
            branch_id=endpoint.branch_id,
        )

    def rank(self, operation: Operation, observed: ObservedState[Endpoint]) -> int | None:
        """Rank the operations of the compute."""
        return compute_rank(operation, self.id, observed.branch_id)


class ProjectSource(msgspec.Struct, frozen=True):
    """Reads a project: whether it exists."""

    id: str

    def __post_init__(self) -> None:
        path_segment("project_id", self.id)

    def __str__(self) -> str:
        return f"project {self.id}"

    @property
    def project_id(self) -> str:
        """The id of the project."""
        return self.id

    async def read(self, polls: Polls) -> ObservedState[Project]:
        """Return the current state of the project."""
        project = await _project(self.id, polls)
        return ObservedState(
            state="existing" if project.deleted_at is None else DELETED,
            updated_at=project.updated_at,
            record=project,
        )

    def rank(self, operation: Operation, observed: ObservedState[Project]) -> int | None:
        """Rank the operations of the project."""
        return project_rank(operation, observed.branch_id)


class ReadyProjectSource(ProjectSource, frozen=True):
    """Reads whether a project can be used.

    A project is ``ready`` if its default branch is ready, and has no pending operation. No
    operation of the whole project may be pending either. Otherwise the project has the state of
    the default branch, or is ``busy``.
    """

    async def read(self, polls: Polls) -> ObservedState[Project]:
        """Return the current state of the project."""
        branch = await self._default_branch(polls)
        if branch is None:
            await _project(self.id, polls)
            return ObservedState(state=_MISSING)
        observed = ObservedState[Project](
            state=branch.current_state,
            pending_state=branch.pending_state,
            updated_at=branch.updated_at,
            branch_id=branch.id,
            pending=pending_of(await newest_operations(self.id, polls), polls.server_now()),
        )
        if not observed.is_steady("ready"):
            return observed
        if any(self.rank(operation, observed) is not None for operation in observed.pending or ()):
            return msgspec.structs.replace(observed, state=_BUSY)
        return msgspec.structs.replace(observed, record=await _project(self.id, polls))

    async def _default_branch(self, polls: Polls) -> Branch | None:
        cursor: str | UnsetType | None = UNSET
        while cursor is not None:
            page = await polls.poll(_oldest_branches(self.id, cursor))
            for branch in page.branches:
                if branch.default:
                    return branch
            cursor = page.pagination.next_cursor if page.branches and page.pagination else None
        return None


def _oldest_branches(project_id: str, cursor: str | UnsetType) -> Request[BranchesPage]:
    return request(
        "GET",
        "/projects/{project_id}/branches",
        BranchesPage,
        project_id,
        query={
            "sort_by": "created_at",
            "sort_order": "asc",
            "limit": _SEARCH_PAGE,
            "cursor": cursor,
        },
    )


async def newest_operations(project_id: str, polls: Polls) -> list[Operation]:
    """Return the newest operations of a project.

    Reads the first page, and older ones as long as the older half of a page has pending operations.
    """
    page = await polls.poll(page_request(project_id, NEWEST_OPERATIONS))
    check_page(project_id, page)
    operations = page.operations
    while (
        page.pagination
        and (cursor := page.pagination.next_cursor)
        and pending_of(page.operations[len(page.operations) // 2 :], polls.server_now())
    ):
        page = await polls.poll(page_request(project_id, MAX_PAGE, cursor))
        check_page(project_id, page)
        operations = operations + page.operations
    return operations


async def _project(project_id: str, polls: Polls) -> Project:
    get = request("GET", "/projects/{project_id}", ProjectResponse, project_id)
    project = (await polls.poll(get)).project
    _check_id(get, "project", project.id, project_id)
    return project


def _check_id(sent: Request[T], kind: str, id: str, expected: str) -> None:
    """Raise InvalidResponseError if a response contains the record of another object."""
    if id != expected:
        raise InvalidResponseError(
            f"it contains {kind} {shorten(id)} instead of {expected!r}",
            method=sent.method,
            path=sent.path,
            status=200,
        )
