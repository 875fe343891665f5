"""``neonctl-async psql``."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from neonctl_async.cli import completion
from neonctl_async.cli.command import command
from neonctl_async.cli.commands.connection_string import (
    DatabaseOption,
    EndpointOption,
    PooledOption,
    RoleOption,
    find_uri,
)
from neonctl_async.cli.options import ProjectOption
from neonctl_async.cli.session import CommandSession
from neonctl_async.models.connection_uri import ConnectionUri

app: Final = typer.Typer()

_MISSING: Final = (
    "psql was not found: install the client programs of Postgres, such as the package "
    "postgresql-client, or pass the output of `neonctl-async connection-string` to another client"
)

ELSEWHERE: Final = frozenset({"PGHOSTADDR", "PGPORT", "PGSERVICE"})
"""Variables that could make psql connect to a different server than the one in the URI."""


@command(
    app,
    "psql",
    "Connect to a branch with psql.",
    example='psql main -- --command "SELECT version()"',
)
async def run_psql(
    session: CommandSession,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BRANCH -- PSQL_ARGS",
            autocompletion=completion.branches,
            help="The id or the name of the branch; by default, the one in the .neon file, else "
            "the default branch. The arguments of psql follow the two dashes.",
            show_default=False,
        ),
    ] = None,
    *,
    project: ProjectOption = None,
    database: DatabaseOption = None,
    role: RoleOption = None,
    endpoint: EndpointOption = None,
    pooled: PooledOption = False,
) -> None:
    program = await asyncio.to_thread(shutil.which, "psql")
    if program is None:
        raise ValueError(_MISSING)
    branch, arguments = split(words or [])
    uri = await find_uri(
        session, project, branch, database=database, role=role, endpoint=endpoint, pooled=pooled
    )
    await session.neon.aclose()
    failure = _replace_process([program, "--dbname", uri.without_password, *arguments], uri)
    raise ValueError(f"{program} cannot be run: {failure}")


def split(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Return the branch, or None, and psql's arguments.

    The parser has removed ``--``. A first word that starts with ``-`` must have followed it, so it
    is an argument of psql.
    """
    if words and not words[0].startswith("-"):
        return words[0], words[1:]
    return None, words


def _replace_process(arguments: list[str], uri: ConnectionUri) -> str | None:
    """Run a program in place of this process. On Windows, run it and exit with its status.

    If that fails, returns the reason instead of raising an error, whose traceback would show the
    password. The environment contains the password, because other users see arguments.
    """
    environment = {name: text for name, text in os.environ.items() if name not in ELSEWHERE}
    if uri.password:
        environment["PGPASSWORD"] = uri.password.reveal()
    try:
        if sys.platform == "win32":
            raise typer.Exit(subprocess.call(arguments, env=environment))  # noqa: S603 - the path of psql and its arguments, without a shell
        with _default_signals():
            os.execve(arguments[0], arguments, environment)  # noqa: S606 - no shell
    except OSError as error:
        return error.strerror


@contextmanager
def _default_signals() -> Generator[None]:
    """Stop ignoring, for a block, the signals that Python ignores.

    A program inherits ignored signals. If the program fails to start, Python has to ignore them
    again; otherwise, a write to a closed socket would kill this process.
    """
    numbers = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ")]
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
