"""The requests that read the state of a branch, a compute or a project."""

import logging
from collections.abc import Awaitable, Collection, Hashable, Iterable, Mapping
from datetime import datetime
from typing import ClassVar, Final, Generic, Protocol, TypeVar

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from neonctl_async._internal import shorten
from neonctl_async.errors import InvalidResponseError, NeonError
from neonctl_async.models.branches import Annotation, Branch, BranchesPage, BranchResponse
from neonctl_async.models.endpoints import Endpoint, EndpointResponse, EndpointsResponse
from neonctl_async.models.operations import Operation
from neonctl_async.models.projects import Project, ProjectResponse
from neonctl_async.transport.encoding import path_segment
from neonctl_async.transport.protocol import Request, request
from neonctl_async.waiting.scan import MAX_PAGE, SCAN_MARGIN
from neonctl_async.waiting.source import (
    NEWEST_OPERATIONS,
    OperationSource,
    check_page,
    is_transient,
    page_request,
)
from neonctl_async.waiting.tracked import Outcome, outcome

T = TypeVar("T")
RecordT = TypeVar("RecordT")

_logger = logging.getLogger(__name__)

SEARCH_PAGE = 100
"""The number of branches per page when searching for the default branch."""
_MISSING = "init"
"""The state of a project whose default branch does not exist yet."""
_BUSY = "busy"
"""The state of a project whose default branch is ready, but has pending operations."""


DELETED: Final = "deleted"
"""The state of an object that the API does not find, or marks as deleted."""


class ObservedState(msgspec.Struct, Generic[RecordT], frozen=True):
    """The state of an object, as the API reported it."""

    state: str
    pending_state: str | None = None
    """The state that the object is changing to, if any."""
    record: RecordT | None = None

    def is_steady(self, state: str) -> bool:
        """Return whether the object is in this state and not changing to another one."""
        return self.state == state and self.pending_state in {None, state}

    def has_same_state(self, other: "ObservedState[RecordT]") -> bool:
        """Return whether both observations have the same state and pending state."""
        return (self.state, self.pending_state) == (other.state, other.pending_state)


def check_state(state: object) -> None:
    """Raise TypeError or ValueError unless ``state`` is a non-empty string."""
    if not isinstance(state, str):
        raise TypeError(f"state is {state!r}: expected a string such as 'ready'")
    if not state:
        raise ValueError("state is empty: expected a state such as 'ready'")


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

    async def read(self, polls: OperationSource, /) -> ObservedState[RecordT]:
        """Return the current state. Raises NotFoundError if the object does not exist."""
        ...

    async def read_list(
        self, ids: Collection[str], polls: OperationSource, /
    ) -> dict[str, ObservedState[RecordT]]:
        """Return the states of the given objects that the project's lists contain."""
        ...


class _ObjectSource(msgspec.Struct, frozen=True):
    """An object in a project."""

    project_id: str
    id: str
    kind: ClassVar[str] = ""
    id_name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        path_segment("project_id", self.project_id)
        path_segment(self.id_name, self.id)

    def __str__(self) -> str:
        return f"{self.kind} {self.id} in {self.project_id}"


class BranchSource(_ObjectSource, frozen=True):
    """Reads a branch."""

    kind = "branch"
    id_name = "branch_id"

    async def read(self, polls: OperationSource) -> ObservedState[Branch]:
        """Return the current state of the branch."""
        path = "/projects/{project_id}/branches/{branch_id}"
        get = request("GET", path, BranchResponse, self.project_id, self.id)
        response = await polls.poll(get)
        _check_id(get, "branch", response.branch.id, self.id)
        return self.observed(response.branch, response.annotation)

    async def read_list(
        self, ids: Collection[str], polls: OperationSource
    ) -> dict[str, ObservedState[Branch]]:
        """List the branches by latest update, as long as that costs less than reads by id."""
        found: dict[str, ObservedState[Branch]] = {}
        cursor: str | UnsetType | None = UNSET
        limit, pages = len(ids) + SCAN_MARGIN, 1
        while cursor is not None and len(ids) - len(found) > pages:
            page = await polls.poll(_branches(self.project_id, "updated_at", "desc", limit, cursor))
            found |= {
                branch.id: self.observed(branch, page.annotations.get(branch.id))
                for branch in page.branches
                if branch.id in ids
            }
            cursor = _next_cursor(page)
            limit, pages = MAX_PAGE, pages + 1
        return found

    def observed(self, branch: Branch, annotation: Annotation | None) -> ObservedState[Branch]:
        """Return the state in a record."""
        return ObservedState(
            state=branch.current_state if branch.recovery is None else DELETED,
            pending_state=branch.pending_state,
            record=msgspec.structs.replace(branch, annotation=annotation),
        )


class ComputeSource(_ObjectSource, frozen=True):
    """Reads a compute."""

    kind = "compute"
    id_name = "endpoint_id"

    async def read(self, polls: OperationSource) -> ObservedState[Endpoint]:
        """Return the current state of the compute."""
        path = "/projects/{project_id}/endpoints/{endpoint_id}"
        get = request("GET", path, EndpointResponse, self.project_id, self.id)
        endpoint = (await polls.poll(get)).endpoint
        _check_id(get, "compute", endpoint.id, self.id)
        return self.observed(endpoint)

    async def read_list(
        self, ids: Collection[str], polls: OperationSource
    ) -> dict[str, ObservedState[Endpoint]]:
        """List the computes of the project."""
        get = request("GET", "/projects/{project_id}/endpoints", EndpointsResponse, self.project_id)
        endpoints = (await polls.poll(get)).endpoints
        return {each.id: self.observed(each) for each in endpoints if each.id in ids}

    def observed(self, endpoint: Endpoint) -> ObservedState[Endpoint]:
        """Return the state in a record."""
        return ObservedState(
            state=endpoint.current_state.value,
            pending_state=endpoint.pending_state and endpoint.pending_state.value,
            record=endpoint,
        )


class ProjectSource(msgspec.Struct, frozen=True):
    """Reads whether a project exists."""

    id: str

    def __post_init__(self) -> None:
        path_segment("project_id", self.id)

    def __str__(self) -> str:
        return f"project {self.id}"

    @property
    def project_id(self) -> str:
        """The id of the project."""
        return self.id

    async def read(self, polls: OperationSource) -> ObservedState[Project]:
        """Return the current state of the project."""
        project = await _project(self.id, polls)
        state = "existing" if project.deleted_at is None else DELETED
        return ObservedState(state, record=project)

    async def read_list(
        self, ids: Collection[str], polls: OperationSource
    ) -> dict[str, ObservedState[Project]]:
        """Return the current state. The project is read, because no list contains its state."""
        return dict.fromkeys(ids, await self.read(polls))


class ReadyProjectSource(ProjectSource, frozen=True):
    """Reads whether a project can be used.

    A project is ``ready`` if its default branch is ready, and no operation of that branch or of
    the whole project is pending. Otherwise it is ``busy``, or has the state of the branch (``init``
    without a branch).
    """

    async def read(self, polls: OperationSource) -> ObservedState[Project]:
        """Return the current state of the project."""
        branch = await self._default_branch(polls)
        if branch is None:
            await _project(self.id, polls)
            return ObservedState(state=_MISSING)
        observed = ObservedState[Project](branch.current_state, branch.pending_state)
        if not observed.is_steady("ready"):
            return observed
        pending = pending_of(await list_operations(self.id, polls), polls.server_now())
        if any(operation.branch_id in {None, branch.id} for operation in pending):
            return ObservedState(_BUSY)
        return ObservedState("ready", record=await _project(self.id, polls))

    async def _default_branch(self, polls: OperationSource) -> Branch | None:
        cursor: str | UnsetType | None = UNSET
        while cursor is not None:
            page = await polls.poll(_branches(self.id, "created_at", "asc", SEARCH_PAGE, cursor))
            for branch in page.branches:
                if branch.default:
                    return branch
            cursor = _next_cursor(page)
        return None


async def read_states(
    sources: Collection[StateSource[RecordT]], polls: OperationSource
) -> Mapping[str, ObservedState[RecordT] | NeonError]:
    """Return the state, or the error of reading it, of each object of one kind and project, by id.

    Two or more objects are read from lists; objects that are missing from the lists are read by id.
    """
    by_id = {source.id: source for source in sources}
    states: dict[str, ObservedState[RecordT] | NeonError] = {}
    if len(by_id) > 1:
        first = next(iter(sources))
        states |= await _logged(f"{first} and others", first.read_list(by_id.keys(), polls))

    async def read(source: StateSource[RecordT]) -> None:
        try:
            states[source.id] = await _logged(str(source), source.read(polls))
        except NeonError as error:
            states[source.id] = error

    async with anyio.create_task_group() as reads:
        for id in by_id.keys() - states.keys():
            reads.start_soon(read, by_id[id])
    return states


def _next_cursor(page: BranchesPage) -> str | None:
    return page.pagination.next_cursor if page.branches and page.pagination else None


def _branches(
    project_id: str, sort_by: str, sort_order: str, limit: int, cursor: str | UnsetType
) -> Request[BranchesPage]:
    return request(
        "GET",
        "/projects/{project_id}/branches",
        BranchesPage,
        project_id,
        query={"sort_by": sort_by, "sort_order": sort_order, "limit": limit, "cursor": cursor},
    )


async def _logged(what: str, reading: Awaitable[T]) -> T:
    """Return the result of a request. Log a failure after which the request will be repeated."""
    try:
        return await reading
    except NeonError as error:
        if is_transient(error):
            _logger.warning("reading %s failed and will be repeated: %s", what, error)
        raise


def pending_of(operations: Iterable[Operation], now: datetime) -> list[Operation]:
    """Return the operations that are pending at the time ``now``."""
    return [each for each in operations if outcome(each, now) is Outcome.PENDING]


async def newest_operations(project_id: str, polls: OperationSource) -> list[Operation]:
    """Return the newest operations of a project, and log a transient failure."""
    return await _logged(f"the operations of {project_id}", list_operations(project_id, polls))


async def list_operations(project_id: str, polls: OperationSource) -> list[Operation]:
    """Return the newest operations of a project.

    Reads the first page, and older pages as long as the older half of a page contains pending
    operations.
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


async def _project(project_id: str, polls: OperationSource) -> Project:
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
