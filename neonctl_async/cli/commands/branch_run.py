"""``neonctl-async branches run``."""

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from neonctl_async.cli import completion
from neonctl_async.cli.child import SignalRelay
from neonctl_async.cli.command import command
from neonctl_async.cli.commands.connection_string import DatabaseOption, RoleOption
from neonctl_async.cli.commands.psql import ELSEWHERE
from neonctl_async.cli.labels import moment_label
from neonctl_async.cli.names import project_and_branch
from neonctl_async.cli.options import WAIT_SECONDS, ProjectOption, TimeoutOption
from neonctl_async.cli.rehearsal.observer import require_driver
from neonctl_async.cli.rehearsal.rehearse import check_file, rehearse
from neonctl_async.cli.session import CommandSession
from neonctl_async.config import API_KEY_VARIABLE
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import Branch, BranchCreated
from neonctl_async.models.connection_uri import ConnectionUri

app: Final = typer.Typer()

LIFETIME_SECONDS: Final = 86_400
"""The lifetime, in seconds, of a branch that this process does not delete, because it was killed or
the user keeps the branch. No migration should take longer."""


@command(
    app,
    "run",
    "Run a command against a new branch, then delete the branch.\n\n"
    "The command gets DATABASE_URL, and DATABASE_URL_POOLED for the pooler. neonctl-async "
    "exits with the status of the command.",
    example="branches run --report report.md -- alembic upgrade head",
)
async def run_on_branch(
    session: CommandSession,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND",
            help="The command and its arguments, after two dashes.",
            show_default=False,
        ),
    ],
    project: ProjectOption = None,
    *,
    parent: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="BRANCH",
            autocompletion=completion.branches,
            help="The id or the name of the parent; by default, the branch in the .neon file, "
            "else the default branch.",
            show_default=False,
        ),
    ] = None,
    database: DatabaseOption = None,
    role: RoleOption = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            callback=check_file,
            help="Write what the command locked and changed to this file: Markdown (.md) or JSON "
            "(.json).",
            show_default=False,
        ),
    ] = None,
    keep_on_failure: Annotated[
        bool, typer.Option("--keep-on-failure", help="Keep the branch if the command fails.")
    ] = False,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    program = await asyncio.to_thread(shutil.which, words[0])
    if program is None:
        raise ValueError(
            f"{words[0]!r} was not found: expected a program after the two dashes; to choose a"
            " project, use --project"
        )
    if report is not None:
        await asyncio.to_thread(require_driver)
    message = "stopping: the new branch is deleted first, which may take a minute"
    relay = SignalRelay(partial(session.screen.print_message, message))
    project, parent = await project_and_branch(session, project, parent)
    status: int | None = None
    created: BranchCreated | None = None
    try:
        async with session.neon.branches.ephemeral(
            project,
            name_prefix="run",
            parent_id=parent,
            ttl_seconds=LIFETIME_SECONDS,
            keep_on_error=keep_on_failure,
            connect=True,
            timeout=timeout,
        ) as created:
            session.names.assumed.clear()  # the command must not run again
            find_uri = partial(
                session.neon.branches.connection_uri,
                project,
                created.branch.id,
                database_name=database,
                role_name=role,
            )
            uri, pooled = await find_uri(), await find_uri(pooled=True)
            run = partial(_run, relay, [program, *words[1:]], _environment(uri, pooled))
            if report is None:
                status = await run()
            else:
                status = await rehearse(
                    session, created.branch, uri, run, report, Path(program).name
                )
            _check(status)
    except (NeonError, TimeoutError, ValueError, typer.Exit, asyncio.CancelledError) as error:
        is_cancelled = isinstance(error, asyncio.CancelledError)
        for note in getattr(error, "__notes__", ()):
            session.screen.print_message(note, "bold red")
        if keep_on_failure and created is not None and status != 0 and not is_cancelled:
            _print_kept(session, created.branch)
        if status is None or is_cancelled:
            raise
        if status == 0:  # so the deletion failed
            session.screen.print_message(f"error: {error}", "bold red")
    raise typer.Exit(status)


def _check(status: int) -> None:
    """Raise Exit if the command failed. The caller may then keep the branch."""
    if status:
        raise typer.Exit(status)


def _environment(uri: ConnectionUri, pooled: ConnectionUri) -> dict[str, str]:
    """Return the environment of the command: that of this process, without its API key."""
    hidden = {*ELSEWHERE, API_KEY_VARIABLE}
    inherited = {name: text for name, text in os.environ.items() if name not in hidden}
    return inherited | {
        "DATABASE_URL": uri.reveal(),
        "DATABASE_URL_POOLED": pooled.reveal(),
    }


async def _run(relay: SignalRelay, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the command. If it cannot start, raises a ValueError without the environment."""
    try:
        return await relay.run(arguments, environment)
    except OSError as error:
        reason = error.strerror
    raise ValueError(f"{arguments[0]} cannot be run: {reason}")


def _print_kept(session: CommandSession, branch: Branch) -> None:
    session.screen.print_message(
        f"branch {branch.id} was kept and expires at {moment_label(branch.expires_at)}; to delete "
        f"it: neonctl-async branches delete {branch.id} --project {branch.project_id}"
    )
