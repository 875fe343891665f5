"""Wait for the operations of a response, and show the result."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec.structs import replace

from neonctl_async.cli.labels import action_label, status_label, status_style
from neonctl_async.cli.output import Screen, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.cli.styles import Text
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import BranchCreated
from neonctl_async.models.operations import Operation, OperationsResponse

OperationsResponseT = TypeVar("OperationsResponseT", bound=OperationsResponse)


async def finish(
    session: CommandSession,
    response: OperationsResponseT,
    view: View[OperationsResponseT],
    *,
    done: str,
    wait: bool,
    timeout: float,
) -> None:
    """Wait for the operations of a response, then show it with their newest records.

    If the wait fails, ``done`` is printed first: it names what the request has created.
    """

    def show() -> None:
        newest = session.tracked.records or response.operations
        session.screen.show(replace(response, operations=newest), view)

    try:
        if wait:
            await session.wait(response.operations, timeout=timeout)
    except (NeonError, asyncio.CancelledError):
        session.screen.print_message(done)
        with suppress(OSError):  # the error of the wait is reported anyway
            show()
        raise
    show()


def connection_uri(screen: Screen, created: BranchCreated) -> str:
    """Return the connection URI, hidden by default, or an empty text without a compute."""
    if not created.connection_uris:
        return ""
    shown = screen.secret(created.connection_uri)
    return shown if screen.show_secrets else f"{shown} (--show-secrets shows it)"


def outcomes(operations: Sequence[Operation]) -> Text:
    """Return the statuses of operations as one line."""
    shown = (
        Text(f"{action_label(one)}: ").append(status_label(one), status_style(one))
        for one in operations
    )
    return Text(", ").join(shown)
