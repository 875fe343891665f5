"""Runs one SQL statement on a branch, with a bounded result. By default, it cannot change data."""

import asyncio
from typing import Final

import msgspec

from neonctl_local.console.sql.session import (
    BoundedSession,
    Bounds,
    Result,
    connect,
)
from neonctl_local.postgres.client.messages import PostgresMessage
from neonctl_local.postgres.client.session import StatementError

STATEMENT_SECONDS: Final = 10
"""How long a statement may take, in seconds."""

CONNECT_SECONDS: Final = 30
"""The timeout for connecting, in seconds, including the start of a suspended compute."""

BOUNDS: Final = Bounds(rows=1000, cell=10_000, total=2_000_000)
"""The largest result that a page shows."""

_BEFORE: Final = 60
_LINE: Final = 120
"""How many characters of a line with an error are shown. ``_BEFORE`` of them precede the error."""

_GRACE_SECONDS: Final = 2
"""The additional seconds in which Postgres can report its own timeout."""


class Place(msgspec.Struct, frozen=True):
    """The place of an error in a statement: line and column numbers from 1, and the line's text."""

    line: int
    column: int
    text: str

    @property
    def shown(self) -> str:
        """The line, cut around the place, with a mark below the place."""
        start = max(0, self.column - _BEFORE)
        return f"{self.text[start : start + _LINE]}\n{' ' * (self.column - 1 - start)}^"


async def run_statement(
    uri: str,
    sql: str,
    *,
    allows_changes: bool = False,
    seconds: float = STATEMENT_SECONDS,
    bounds: Bounds = BOUNDS,
) -> Result:
    """Run one statement as a client with the URI would. Raise StatementError if it fails.

    Without ``allows_changes``, the statement runs in a read-only transaction. If this coroutine is
    cancelled, the statement is cancelled too.
    """
    settings = {
        "application_name": "neonctl-async console",
        "statement_timeout": f"{seconds * 1000:.0f}",
    }
    if "\0" in sql:
        raise _error("the statement contains a zero character: remove it", "22021")
    try:
        async with connect(uri, CONNECT_SECONDS, settings) as session:
            async with asyncio.timeout(seconds + _GRACE_SECONDS):
                return await _run(session, sql, bounds, allows_changes=allows_changes)
    except TimeoutError:
        raise _error(
            f"the statement or the start of the compute took too long: a statement may take "
            f"{seconds:g} seconds",
            "57014",
        ) from None
    except (OSError, EOFError):
        # The text of these errors may contain the address, but nothing that helps.
        raise _error(
            "the connection to the database broke: run the statement again", "08006"
        ) from None


async def _run(
    session: BoundedSession, sql: str, bounds: Bounds, *, allows_changes: bool
) -> Result:
    if allows_changes:
        return await session.run(sql, bounds, stops=False)
    await session.execute("BEGIN TRANSACTION READ ONLY")
    return await session.run(sql, bounds, stops=True)


def place_of(error: PostgresMessage, sql: str) -> Place | None:
    """Return the place of an error in its statement, or None if Postgres reports none."""
    if error.position is None or not 0 < error.position <= len(sql) + 1:
        return None
    before = sql[: error.position - 1]
    line = before.count("\n") + 1
    text = sql.split("\n")[line - 1].rstrip("\r")
    return Place(line, len(before) - (before.rfind("\n") + 1) + 1, text)


def _error(message: str, sqlstate: str) -> StatementError:
    return StatementError(PostgresMessage(severity="ERROR", message=message, sqlstate=sqlstate))
