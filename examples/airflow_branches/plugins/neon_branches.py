"""An operator and a trigger for Apache Airflow 3 that create a Neon branch and wait for it.

The operator runs in a worker: it sends the requests that create the branch, and frees its slot. The
trigger runs in a triggerer, which runs thousands of triggers on one event loop. Triggers with the
same API key and host share one client, which polls a project's operations together.

The API key is the password of an Airflow connection. A trigger stores only ids and a deadline, and
XCom stores only the branch id.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from airflow.sdk import BaseHook, BaseOperator, Connection
from airflow.triggers.base import BaseTrigger, TriggerEvent

from neonctl_async import UNSET, NeonClient, NeonError, OperationRef
from neonctl_async.types import EndpointSpec, EnsuredBranch

GRACE: Final = 60.0
"""How long after the deadline, in seconds, Airflow ends a wait that no triggerer is running."""


@dataclass
class SharedClient:
    """A client and the number of its users."""

    neon: NeonClient
    users: int = 0


class Clients:
    """The open clients of a process: one for each event loop, API key and host."""

    def __init__(self) -> None:
        self.open: dict[tuple[object, ...], SharedClient] = {}

    @asynccontextmanager
    async def use(self, connection: Connection) -> AsyncGenerator[NeonClient]:
        """Yield the client for a connection. The client's last user closes it."""
        key = (asyncio.get_running_loop(), connection.password, connection.host)
        shared = self.open.get(key)
        if shared is None:  # no await until the client is in the table: other triggers use it
            shared = self.open[key] = SharedClient(client_of(connection))
        shared.users += 1
        try:
            yield shared.neon
        finally:
            shared.users -= 1
            if not shared.users:
                del self.open[key]
                await shared.neon.aclose()


CLIENTS: Final = Clients()


def client_of(connection: Connection) -> NeonClient:
    """Return a new client. The password is the API key; the host may be another API's URL."""
    return NeonClient(connection.password, base_url=connection.host or None)


class BranchTrigger(BaseTrigger):
    """Waits until the operations of a branch have finished, or until the deadline.

    Its event contains the branch id, and the error of the wait, which is None on success. If a
    triggerer stops, another triggerer continues the wait with the same deadline.
    """

    def __init__(
        self,
        *,
        conn_id: str,
        project_id: str,
        branch_id: str,
        operation_ids: Sequence[str],
        deadline: float,
    ) -> None:
        super().__init__()
        self.conn_id = conn_id
        self.project_id = project_id
        self.branch_id = branch_id
        self.operation_ids = list(operation_ids)
        self.deadline = deadline

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and its arguments, which Airflow stores in its database."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "conn_id": self.conn_id,
                "project_id": self.project_id,
                "branch_id": self.branch_id,
                "operation_ids": self.operation_ids,
                "deadline": self.deadline,
            },
        )

    async def run(self) -> AsyncGenerator[TriggerEvent]:
        """Yield one event when the wait is over."""
        error: str | None = None
        try:
            await self._wait()
        except NeonError as failure:
            error = str(failure)
        # The client is released before the event: Airflow may never resume this generator.
        yield TriggerEvent({"branch_id": self.branch_id, "error": error})

    async def _wait(self) -> None:
        refs = [OperationRef(project_id=self.project_id, id=one) for one in self.operation_ids]
        connection = await BaseHook.aget_connection(self.conn_id)
        async with CLIENTS.use(connection) as neon:
            await neon.operations.wait(refs, timeout=max(0.0, self.deadline - time.time()))


class EnsureBranchOperator(BaseOperator):
    """Creates a branch with a compute, waits until both are ready, and returns the branch id.

    A repeated task adopts the branch that an earlier attempt created. ``timeout`` is in seconds,
    and Neon deletes the branch after ``expires_in``.
    """

    template_fields: Sequence[str] = ("conn_id", "project_id", "branch", "parent")

    def __init__(
        self,
        *,
        project_id: str,
        branch: str,
        parent: str | None = None,
        expires_in: timedelta | None = None,
        timeout: float = 900.0,
        conn_id: str = "neon_default",
        **options: object,
    ) -> None:
        super().__init__(**options)
        self.project_id = project_id
        self.branch = branch
        self.parent = parent
        self.expires_in = expires_in
        self.timeout = timeout
        self.conn_id = conn_id

    def execute(self, context: object) -> str:
        """Create or adopt the branch. If it is not ready yet, hand the wait to a triggerer."""
        del context
        ensured = asyncio.run(self._ensure(BaseHook.get_connection(self.conn_id)))
        if ensured.operations:
            self.defer(
                trigger=BranchTrigger(
                    conn_id=self.conn_id,
                    project_id=self.project_id,
                    branch_id=ensured.branch.id,
                    operation_ids=[operation.id for operation in ensured.operations],
                    deadline=time.time() + self.timeout,
                ),
                method_name="finish",
                timeout=timedelta(seconds=self.timeout + GRACE),
            )
        return ensured.branch.id

    def finish(self, context: object, event: dict[str, Any]) -> str:
        """Return the id of the branch, or fail the task with the error of the wait."""
        del context
        if event["error"] is not None:
            raise RuntimeError(f"branch {event['branch_id']} is not ready: {event['error']}")
        return str(event["branch_id"])

    async def _ensure(self, connection: Connection) -> EnsuredBranch:
        async with client_of(connection) as neon:
            return await neon.branches.ensure(
                self.project_id,
                name=self.branch,
                parent=UNSET if self.parent is None else self.parent,
                expires_at=(
                    UNSET if self.expires_in is None else datetime.now(UTC) + self.expires_in
                ),
                endpoints=[EndpointSpec(type="read_write")],
            )
