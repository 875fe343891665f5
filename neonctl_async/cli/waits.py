"""What a request has started: waited for, and shown whatever becomes of it."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec.structs import replace
from rich.text import Text

from neonctl_async.cli.labels import action_label, status_label, status_style
from neonctl_async.cli.output import Screen, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import BranchCreated
from neonctl_async.models.operations import Operation, OperationsResponse

OperationsResponseT = TypeVar("OperationsResponseT", bound=OperationsResponse)


async def finish(
    session: CommandSession,
    started: OperationsResponseT,
    view: View[OperationsResponseT],
    *,
    told: str,
    wait: bool,
    timeout: float,
) -> None:
    """Wait for what was started, and show the answer with the newest records of its operations.

    ``told`` says what has been done all the same when the wait does not end well.
    """

    def show() -> None:
        newest = session.tracked.records or started.operations
        session.screen.show(replace(started, operations=newest), view)

    try:
        if wait:
            await session.wait(started.operations, timeout=timeout)
    except (NeonError, asyncio.CancelledError):
        session.screen.tell(told)
        with suppress(OSError):  # what went wrong with the wait is told in any case
            show()
        raise
    show()


def connection_uri(screen: Screen, created: BranchCreated) -> str:
    """How to connect to what was created, if it has a compute; hidden unless asked for."""
    if not created.connection_uris:
        return ""
    shown = screen.secret(created.connection_uri)
    return shown if screen.show_secrets else f"{shown} (--show-secrets shows it)"


def outcomes(operations: Sequence[Operation]) -> Text:
    """How operations stand, in a line."""
    shown = (
        Text(f"{action_label(one)}: ").append(status_label(one), status_style(one))
        for one in operations
    )
    return Text(", ").join(shown)
