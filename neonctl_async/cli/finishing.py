"""Wait for the operations of a response, and show the result."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from neonctl_async.cli.labels import action_label, status_label, status_style
from neonctl_async.cli.output import Screen, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.cli.styles import Text
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import BranchCreated, EnsuredBranch
from neonctl_async.models.endpoints import Endpoint
from neonctl_async.models.operations import Operation, OperationsResponse

if TYPE_CHECKING:
    from neonctl_async.transport.calls import Deadline

T = TypeVar("T")
OperationsResponseT = TypeVar("OperationsResponseT", bound=OperationsResponse)


async def finish(
    session: CommandSession,
    response: OperationsResponseT,
    view: View[OperationsResponseT],
    *,
    done: str,
    wait: bool,
    timeout: float,
    connect: Sequence[Endpoint] = (),
) -> None:
    """Wait for the operations of a response, then show it with their latest records.

    Before showing it, wait until the computes in ``connect`` accept connections. If a wait fails,
    first print ``done``, which says what was created or requested, and which is true even if all
    operations have failed.
    """

    def show() -> None:
        newest = session.operations.records or response.operations
        session.screen.show(replace(response, operations=newest), view)

    try:
        if wait:
            deadline = await session.wait(response.operations, timeout=timeout)
            await wait_connectable(session, connect, deadline)
    except (NeonError, asyncio.CancelledError):
        session.screen.print_message(done)
        with suppress(OSError):  # the error of the wait is reported anyway
            show()
        raise
    show()


def check_connect(*, connect: bool, wait: bool, compute: bool = True) -> None:
    """Raise ValueError if ``--connect`` contradicts another option."""
    if connect and not wait:
        raise ValueError("--connect and --no-wait are both set: leave one of them out")
    if connect and not compute:
        raise ValueError("--connect and --no-compute are both set: leave one of them out")


async def wait_connectable(
    session: CommandSession, computes: Iterable[Endpoint], deadline: "Deadline"
) -> list[Endpoint]:
    """Wait until computes accept connections."""
    return await in_parallel(
        session.neon.endpoints.wait_connectable(one.project_id, one.id, timeout=deadline.left)
        for one in computes
    )


async def in_parallel(waits: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run waits at the same time, and return their results. Raises their first error."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(wait) for wait in waits]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def connection_uri(screen: Screen, created: BranchCreated | EnsuredBranch) -> str:
    """Return the connection URI of a new branch, hidden by default. Return "" if there is none."""
    if not created.connection_uris:
        return ""
    return screen.secret_with_hint(created.connection_uris[0].connection_uri)


def outcomes_view(title: str, id: str) -> View[OperationsResponse]:
    """Return the view of a response that contains only operations.

    ``id`` is the id or the name of the changed object. ``title`` states the change, such as
    ``Deleted``.
    """
    return View(
        columns={
            title: lambda _changed: id,
            "Operations": lambda changed: outcomes(changed.operations),
        },
        raw=lambda _changed: id,
    )


def outcomes(operations: Sequence[Operation]) -> Text:
    """Return the statuses of operations as one line."""
    shown = (
        Text(f"{action_label(one)}: ").append(status_label(one), status_style(one))
        for one in operations
    )
    return Text(", ").join(shown)
