"""The requests of a poll: an operation, the newest operations of a project, or a state."""

from typing import TypeGuard, TypeVar

from msgspec import UNSET, UnsetType

from neonctl_async.errors import APIError, InvalidResponseError, NeonError, TransportError
from neonctl_async.models.operations import (
    Operation,
    OperationRef,
    OperationResponse,
    OperationsPage,
)
from neonctl_async.transport.budget import Budget, Slot
from neonctl_async.transport.protocol import Request, request
from neonctl_async.transport.retry import TRANSIENT_STATUSES
from neonctl_async.transport.session import Session

T = TypeVar("T")

MAX_PAGE = 1000
"""The largest page size that the API accepts."""
POLL_TIMEOUT = 10.0
"""The timeout of a poll, in seconds. After it, a new request is more likely to succeed."""


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


GET_ROUTE = "GET /projects/{id}/operations/{id}"
LIST_ROUTE = "GET /projects/{id}/operations"
"""The routes of the two requests, against which the rate budget counts them."""


class OperationSource:
    """Reads operations. Each request is sent once: the next poll is the retry."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def budget(self) -> Budget:
        """The rate budget of the requests."""
        return self._session.budget

    async def acquire_poll_slot(self, *, of_list: bool = True) -> Slot:
        """Wait until the rate budget allows another poll: of a list, or of one operation."""
        route = LIST_ROUTE if of_list else GET_ROUTE
        return await self._session.budget.acquire(route, is_poll=True)

    async def get(self, ref: OperationRef, slot: Slot | None = None) -> Operation:
        """Return one operation."""
        poll = operation_request(ref.project_id, ref.id)
        return (await self._session.poll(poll, POLL_TIMEOUT, slot)).operation

    async def newest(
        self,
        project_id: str,
        limit: int,
        cursor: str | UnsetType = UNSET,
        slot: Slot | None = None,
    ) -> OperationsPage:
        """Return the ``limit`` newest operations of a project, or those after ``cursor``."""
        request = page_request(project_id, limit, cursor)
        return await self._session.poll(request, POLL_TIMEOUT, slot)

    async def poll(self, request: Request[T]) -> T:
        """Send any other request as a poll, as soon as the rate budget allows it."""
        return await self._session.poll(request, POLL_TIMEOUT)


def is_transient(error: Exception) -> TypeGuard[NeonError]:
    """Return whether the next poll may succeed after this failure."""
    if isinstance(error, APIError):
        return error.status in TRANSIENT_STATUSES or error.status >= 500
    return isinstance(error, TransportError | InvalidResponseError)
