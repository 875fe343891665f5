"""The two ways to look at operations while waiting: one by id, or a project's newest."""

from neonctl_async.models.operations import (
    Operation,
    OperationRef,
    OperationResponse,
    OperationsPage,
)
from neonctl_async.transport.protocol import request
from neonctl_async.transport.session import Session

MAX_PAGE = 1000
"""The most operations that a page may hold (the platform's limit)."""
LOOK_TIMEOUT = 10.0
"""Seconds after which a look is given up: the next one is likelier to be answered."""


class OperationSource:
    """Looks at operations. Each look is sent once: when to look again is the poller's to say."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def get(self, ref: OperationRef) -> Operation:
        """One operation (specification, section 4.4)."""
        answer = await self._session.send_once(
            request(
                "GET",
                "/projects/{project_id}/operations/{operation_id}",
                OperationResponse,
                project_id=ref.project_id,
                operation_id=ref.id,
            ),
            LOOK_TIMEOUT,
        )
        return answer.operation

    async def newest(self, project_id: str, limit: int) -> list[Operation]:
        """The ``limit`` newest operations of a project (specification, section 4.3)."""
        answer = await self._session.send_once(
            request(
                "GET",
                "/projects/{project_id}/operations",
                OperationsPage,
                query={"limit": limit},
                project_id=project_id,
            ),
            LOOK_TIMEOUT,
        )
        return answer.operations
