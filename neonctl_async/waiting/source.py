"""The two ways to look at operations while waiting: one by id, or a project's newest."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.operations import (
    Operation,
    OperationRef,
    OperationResponse,
    OperationsPage,
)
from neonctl_async.transport.protocol import Request, request
from neonctl_async.transport.session import Session

MAX_PAGE = 1000
"""The most operations that a page may hold (the platform's limit)."""
POLL_TIMEOUT = 10.0
"""Seconds after which a look is given up: the next one is likelier to be answered."""


def operation_request(project_id: str, operation_id: str) -> Request[OperationResponse]:
    """The request for one operation (specification, section 4.4)."""
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
    """The request for a page of a project's operations, newest first (specification, 4.3)."""
    return request(
        "GET",
        "/projects/{project_id}/operations",
        OperationsPage,
        project_id,
        query={"limit": limit, "cursor": cursor},
    )


class OperationSource:
    """Looks at operations. Each look is sent once: when to look again is the poller's to say."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def acquire_poll_slot(self) -> None:
        """Wait for the turn of one more look."""
        await self._session.acquire_poll_slot()

    async def get(self, ref: OperationRef) -> Operation:
        """One operation (specification, section 4.4)."""
        poll = operation_request(ref.project_id, ref.id)
        return (await self._session.poll(poll, POLL_TIMEOUT)).operation

    async def newest(
        self, project_id: str, limit: int, cursor: str | UnsetType = UNSET
    ) -> OperationsPage:
        """The ``limit`` newest operations of a project, or those after ``cursor``."""
        return await self._session.poll(page_request(project_id, limit, cursor), POLL_TIMEOUT)
