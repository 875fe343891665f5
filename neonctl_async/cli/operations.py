"""``neonctl-async operations``."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from neonctl_async.cli import tracked
from neonctl_async.cli.command import command
from neonctl_async.cli.labels import (
    action_label,
    duration_label,
    is_pending,
    moment_label,
    printable,
    status_label,
    status_style,
)
from neonctl_async.cli.options import WAIT_SECONDS, ProjectOption, TimeoutOption
from neonctl_async.cli.output import Output, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.errors import NeonError
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting.source import MAX_PAGE

app: Final = typer.Typer(
    help="Operations, the platform's records of its work: list, read, wait, watch.",
    no_args_is_help=True,
)

NEWEST = 100
"""How many operations of a project are looked through for pending ones."""


def _parse_file(name: str) -> tracked.References:
    """Of ``--resume``: ``-`` is standard input."""
    try:
        if name == "-":
            return tracked.parse(sys.stdin.read().splitlines())
        with Path(name).open(encoding="utf-8") as lines:
            return tracked.parse(lines)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None


OperationArgument = Annotated[
    str, typer.Argument(metavar="OPERATION_ID", help="The operation.", show_default=False)
]
OperationsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="OPERATION_ID",
        help=f"Left out, those that are pending among the newest {NEWEST} of the project.",
        show_default=False,
    ),
]
ResumeOption = Annotated[
    tracked.References | None,
    typer.Option(
        "--resume",
        metavar="FILE",
        parser=_parse_file,
        help="What an earlier command left pending; - is standard input.",
    ),
]
NumberOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="How many at most.")]
OptionalProject = Annotated[
    str | None,
    typer.Option(
        "--project", "-p", envvar="NEON_PROJECT_ID", metavar="PROJECT_ID", help="The project."
    ),
]


def _view(branches: Mapping[str, str]) -> View[Operation]:
    """What the console shows of operations. ``branches`` are names, by id."""
    return View(
        columns={
            "Operation": action_label,
            "Branch": lambda one: branches.get(one.branch_id or "", one.branch_id or ""),
            "Compute": lambda one: one.endpoint_id or "",
            "Status": lambda one: Text(printable(status_label(one)), status_style(one)),
            "Duration": duration_label,
            "Date": lambda one: moment_label(one.created_at),
        },
        raw=lambda one: one.id,
        whole=("Operation", "Status"),
    )


_OPERATION: View[Operation] = View(
    columns={
        "ID": lambda one: one.id,
        "Project": lambda one: one.project_id,
        **_view({}).columns,
        "Error": lambda one: one.error or "",
    },
    raw=lambda one: one.id,
)


@command(
    app,
    "list",
    "List the operations of a project, newest first, as the console's monitoring view does.",
    example="operations list --limit 5",
)
async def list_operations(
    session: CommandSession, project: ProjectOption, limit: NumberOption = 20
) -> None:
    operations = await session.neon.operations.list(project, limit=min(limit, MAX_PAGE)).collect(
        limit
    )
    session.screen.show_list(operations, await _named(session, operations))


@command(app, "get", "Show an operation.", example="operations get $NEON_OPERATION_ID")
async def get_operation(
    session: CommandSession, operation: OperationArgument, project: ProjectOption
) -> None:
    session.screen.show(await session.neon.operations.get(project, operation), _OPERATION)


@command(
    app,
    "wait",
    "Wait until operations have ended: those named, those of a file, or all that are pending.",
    example="operations wait --timeout 60",
)
async def wait_for_operations(
    session: CommandSession,
    operations: OperationsArgument = None,
    project: OptionalProject = None,
    resume: ResumeOption = None,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    tracked = await _targets(session, operations, project, resume)
    try:
        await session.wait(tracked, timeout=timeout)
    except (NeonError, asyncio.CancelledError):
        with suppress(OSError):  # what went wrong with the wait is told in any case
            session.screen.show_list(session.tracked.records, _view({}))
        raise
    session.screen.show_list(session.tracked.records, _view({}))


@command(
    app,
    "watch",
    "Show every change of operations as it is seen, until all have ended.",
    example="operations watch --output jsonl",
)
async def watch_operations(
    session: CommandSession,
    operations: OperationsArgument = None,
    project: OptionalProject = None,
    resume: ResumeOption = None,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    if session.screen.output is Output.JSON:
        raise ValueError("--output json is one value, and a watch has no end: take jsonl")

    def tell(operation: Operation) -> None:
        session.screen.show_next(operation, _OPERATION, _line(operation))

    tracked = await _targets(session, operations, project, resume)
    await session.wait(tracked, timeout=timeout, tell=tell)


async def _targets(
    session: CommandSession,
    operations: Sequence[str] | None,
    project: str | None,
    resume: tracked.References | None,
) -> Sequence[Operation | OperationRef]:
    """What is to be waited for."""
    if resume is not None:
        if operations:
            raise ValueError("--resume names the operations: give it, or ids, not both")
        if not resume.operations:
            session.screen.tell("the file names no operation: there is nothing to wait for")
        return resume.operations
    if project is None:
        raise ValueError("no project: give --project, set NEON_PROJECT_ID, or use --resume FILE")
    if operations:
        return [OperationRef(project_id=project, id=id) for id in operations]
    newest = await session.neon.operations.list(project, limit=NEWEST).collect(NEWEST)
    found = [operation for operation in newest if is_pending(operation)]
    if not found:
        session.screen.tell(f"nothing is pending in project {project}")
    return found


async def _named(session: CommandSession, operations: Sequence[Operation]) -> View[Operation]:
    """The view, with the names of branches where they will be read."""
    if session.screen.output is not Output.TABLE or not operations:
        return _view({})
    branches = session.neon.branches.list(operations[0].project_id, limit=1000)
    return _view({branch.id: branch.name for branch in await branches.collect()})


def _line(operation: Operation) -> Text:
    """A change of an operation."""
    return Text(" ").join(
        [
            Text(f"{datetime.now().astimezone():%H:%M:%S}", "dim"),
            Text(f"{action_label(operation):<18}"),
            Text(f"{printable(status_label(operation)):<11}", status_style(operation)),
            Text(operation.id, "dim"),
            Text(printable(operation.error or "")),
        ]
    )
