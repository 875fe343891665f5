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


class OperationSource:
    """Reads operations. Each request is sent once: the next poll is the retry."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def acquire_poll_slot(self) -> None:
        """Wait until the rate budget allows another poll."""
        await self._session.acquire_poll_slot()

    async def get(self, ref: OperationRef) -> Operation:
        """Return one operation."""
        poll = operation_request(ref.project_id, ref.id)
        return (await self._session.poll(poll, POLL_TIMEOUT)).operation

    async def newest(
        self, project_id: str, limit: int, cursor: str | UnsetType = UNSET
    ) -> OperationsPage:
        """Return the ``limit`` newest operations of a project, or those after ``cursor``."""
        return await self._session.poll(page_request(project_id, limit, cursor), POLL_TIMEOUT)

    async def poll(self, request: Request[T]) -> T:
        """Send any other request as a poll, as soon as the rate budget allows it."""
        await self.acquire_poll_slot()
        return await self._session.poll(request, POLL_TIMEOUT)


def is_transient(error: Exception) -> TypeGuard[NeonError]:
    """Return whether the next poll may succeed after this failure."""
    if isinstance(error, APIError):
        return error.status in TRANSIENT_STATUSES or error.status >= 500
    return isinstance(error, TransportError | InvalidResponseError)
