"""The requests of a poll: an operation, the newest operations of a project, or a state."""

from datetime import datetime
from typing import TypeGuard, TypeVar

from msgspec import UNSET, UnsetType

from neonctl_async._internal import shorten
from neonctl_async.errors import APIError, InvalidResponseError, NeonError, TransportError
from neonctl_async.models.operations import (
    Operation,
    OperationRef,
    OperationResponse,
    OperationsPage,
)
from neonctl_async.transport.budget import Budget, Slot
from neonctl_async.transport.pause import MAX_PAUSE
from neonctl_async.transport.protocol import Request, request
from neonctl_async.transport.retry import TRANSIENT_STATUSES
from neonctl_async.transport.scheduler import Urgency
from neonctl_async.transport.session import Session

T = TypeVar("T")

NEWEST_OPERATIONS = 100
"""The number of a project's newest operations that are searched for pending ones."""
POLL_TIMEOUT = 10.0
"""The timeout of a poll, in seconds, after which a new request is more likely to succeed."""


def operation_request(project_id: str, operation_id: str) -> Request[OperationResponse]:
    """Return the request for one operation."""
    return request(
        "GET",
        "/projects/{project_id}/operations/{operation_id}",
        OperationResponse,
        project_id,
        operation_id,
    )


def page_request(
    project_id: str, limit: int | UnsetType, cursor: str | UnsetType = UNSET
) -> Request[OperationsPage]:
    """Return the request for a page of operations, newest first."""
    return request(
        "GET",
        "/projects/{project_id}/operations",
        OperationsPage,
        project_id,
        query={"limit": limit, "cursor": cursor},
    )


def check_operation(project_id: str, operation_id: str, operation: Operation) -> None:
    """Raise InvalidResponseError unless ``operation`` is the requested record."""
    if (operation.project_id, operation.id) == (project_id, operation_id):
        return
    raise _invalid_response(
        operation_request(project_id, operation_id),
        f"it is the record of another operation, {shorten(operation.id)} in project "
        f"{shorten(operation.project_id)}",
    )


def check_page(project_id: str, page: OperationsPage) -> None:
    """Raise InvalidResponseError unless all operations of ``page`` belong to the project."""
    for operation in page.operations:
        if operation.project_id != project_id:
            raise _invalid_response(
                page_request(project_id, UNSET),
                f"it contains operation {shorten(operation.id)} of project "
                f"{shorten(operation.project_id)}",
            )


def _invalid_response(sent: Request[T], problem: str) -> InvalidResponseError:
    return InvalidResponseError(problem, method=sent.method, path=sent.path, status=200)


GET_ROUTE = "GET /projects/{id}/operations/{id}"
LIST_ROUTE = "GET /projects/{id}/operations"
"""The routes by which the rate budget counts the two requests."""


class OperationSource:
    """Reads operations. Each request is sent once: the next poll is the retry."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def budget(self) -> Budget:
        """The rate budget of the requests."""
        return self._session.budget

    def server_now(self) -> datetime:
        """Return the time on Neon's clock, with which ``retry_at`` is compared."""
        return self._session.server_now()

    @property
    def holds_reads(self) -> bool:
        """True if the server holds reads of new operations briefly, until they have settled."""
        return self._session.holds_reads

    async def acquire_poll_slot(
        self, *, is_list: bool, urgency: Urgency, slot: Slot | None = None
    ) -> Slot:
        """Wait until the rate budget allows another poll: of a list, or of one operation.

        Return ``slot`` at once if it is for such a poll. Otherwise, cancel it.
        """
        route = LIST_ROUTE if is_list else GET_ROUTE
        if slot is not None:
            if slot.route == route:
                return slot
            slot.cancel()
        return await self.budget.acquire(route, is_poll=True, urgency=urgency)

    async def get(self, ref: OperationRef, slot: Slot | None = None) -> Operation:
        """Return one operation, using ``slot`` if it is given.

        Raises InvalidResponseError if the response contains the record of another operation.
        """
        poll = operation_request(ref.project_id, ref.id)
        operation = (await self._session.poll(poll, POLL_TIMEOUT, slot)).operation
        check_operation(ref.project_id, ref.id, operation)
        return operation

    async def newest(
        self,
        project_id: str,
        limit: int,
        cursor: str | UnsetType = UNSET,
        slot: Slot | None = None,
    ) -> OperationsPage:
        """Return the ``limit`` newest operations of a project, or those after ``cursor``.

        Raises InvalidResponseError if the page contains the record of another project.
        """
        poll = page_request(project_id, limit, cursor)
        page = await self._session.poll(poll, POLL_TIMEOUT, slot)
        check_page(project_id, page)
        return page

    async def poll(self, request: Request[T]) -> T:
        """Send any other request as a poll, as soon as the rate budget allows it."""
        return await self._session.poll(request, POLL_TIMEOUT)


def pause_after(error: NeonError) -> float:
    """Return how long the next poll must wait because of a ``Retry-After``, in seconds."""
    demanded = error.retry_after if isinstance(error, APIError) else None
    return min(demanded or 0.0, MAX_PAUSE)


def is_transient(error: Exception) -> TypeGuard[NeonError]:
    """Return whether the next poll may succeed after this failure."""
    if isinstance(error, APIError):
        return error.status in TRANSIENT_STATUSES or error.status >= 500
    return isinstance(error, TransportError | InvalidResponseError)
