"""``neonctl-async operations``."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from neonctl_async.cli import reference_file
from neonctl_async.cli.command import command
from neonctl_async.cli.labels import (
    action_label,
    duration_label,
    is_pending,
    printable,
    status_label,
    status_style,
)
from neonctl_async.cli.names import branch_id, branch_names, project_id
from neonctl_async.cli.options import (
    WAIT_SECONDS,
    OfBranchOption,
    ProjectOption,
    TimeoutOption,
    standard_input,
)
from neonctl_async.cli.output import Output, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.cli.styles import Text
from neonctl_async.errors import NeonError
from neonctl_async.models.operations import Operation, OperationRef, OperationStatus

if TYPE_CHECKING:
    from neonctl_async.pagination import Paginator

app: Final = typer.Typer()

MAX_PAGE = 1000
NEWEST = 100
"""How many of a project's latest operations are searched for pending ones."""


def _parse_file(name: str) -> reference_file.References:
    """Parse the file of ``--resume``; ``-`` is standard input."""
    try:
        if name == "-":
            return reference_file.parse(standard_input().splitlines())
        return reference_file.read(Path(name))
    except OSError as error:
        raise typer.BadParameter(f"{name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _normalized(text: str) -> str:
    """Return a status or an action in the API's spelling, or a label in the same style."""
    return text.strip().lower().replace(" ", "_").replace("-", "_")


def _parse_status(text: str) -> str:
    status = _normalized(text)
    labels = ("ok", "scheduling", "in_progress", "error")
    if status not in {*labels, *OperationStatus}:
        expected = ", ".join(dict.fromkeys([*labels, *OperationStatus]))
        raise typer.BadParameter(f"{text!r} is no status: expected {expected}")
    return status


OperationArgument = Annotated[
    str, typer.Argument(metavar="OPERATION_ID", help="The operation.", show_default=False)
]
OperationsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="OPERATION_ID",
        help=f"By default, the pending operations among the project's newest {NEWEST}.",
        show_default=False,
    ),
]
ResumeOption = Annotated[
    reference_file.References | None,
    typer.Option(
        "--resume",
        metavar="FILE",
        parser=_parse_file,
        help="The file that an earlier command wrote; - is standard input.",
    ),
]
NumberOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, help="The maximum number of rows.")
]


_COLUMNS: Final[Mapping[str, Callable[[Operation], str | Text]]] = MappingProxyType(
    {
        "ID": lambda one: one.id,
        "Operation": action_label,
        "Status": lambda one: Text(printable(status_label(one)), status_style(one)),
    }
)


def _view(branches: Mapping[str, str]) -> View[Operation]:
    """Return the columns of a list. ``branches`` maps ids to names."""
    return View(
        columns={
            **_COLUMNS,
            "Date": lambda one: one.created_at,
            "Duration": duration_label,
            "Branch": lambda one: branches.get(one.branch_id or "", one.branch_id),
            "Compute": lambda one: one.endpoint_id,
            "Error": lambda one: one.error,
        },
        raw=lambda one: one.id,
        whole=("ID", "Compute"),
        first=("Status", "Operation", "Error"),
    )


_OPERATION: View[Operation] = View(
    columns={
        **_COLUMNS,
        "Error": lambda one: one.error or "",
        "Project": lambda one: one.project_id,
        "Branch": lambda one: one.branch_id or "",
        "Compute": lambda one: one.endpoint_id or "",
        "Duration": duration_label,
        "Date": lambda one: one.created_at,
    },
    raw=lambda one: one.id,
)


@command(
    app,
    "list",
    "List the operations of a project, newest first, like the Neon console.",
    example="operations list --status error --limit 5",
)
async def list_operations(
    session: CommandSession,
    project: ProjectOption = None,
    limit: NumberOption = 20,
    *,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            parser=_parse_status,
            help="Only operations with this status, e.g. failed or running, or this label: ok, "
            "scheduling, in-progress, or error for all failures.",
        ),
    ] = None,
    branch: OfBranchOption = None,
    action: Annotated[
        str | None,
        typer.Option(
            "--action",
            metavar="ACTION",
            parser=_normalized,
            help="Only operations with this action, e.g. create_branch.",
        ),
    ] = None,
) -> None:
    project = await project_id(session, project)
    if branch is not None:
        branch = await branch_id(session, project, branch)

    def is_wanted(one: Operation) -> bool:
        return (
            status in {None, one.status, _normalized(status_label(one))}
            and branch in {None, one.branch_id}
            and action in {None, one.action}
        )

    if status is branch is action is None:
        listed = session.neon.operations.list(project, limit=min(limit, MAX_PAGE))
        found = await listed.collect(limit)
    else:
        found = await _first(
            session.neon.operations.list(project, limit=MAX_PAGE), is_wanted, limit
        )
    session.screen.show_list(found, _view(await branch_names(session, project)))


async def _first(
    listed: "Paginator[Operation]", is_wanted: Callable[[Operation], bool], limit: int
) -> list[Operation]:
    found: list[Operation] = []
    async with aclosing(listed.pages()) as pages:
        async for page in pages:
            found += filter(is_wanted, page)
            if len(found) >= limit:
                break
    return found[:limit]


@command(app, "get", "Show an operation.", example="operations get $NEON_OPERATION_ID")
async def get_operation(
    session: CommandSession, operation: OperationArgument, project: ProjectOption = None
) -> None:
    project = await project_id(session, project)
    session.screen.show(await session.neon.operations.get(project, operation), _OPERATION)


@command(
    app,
    "wait",
    "Wait until operations have finished: by id, from a file, or all pending ones.",
    example="operations wait --timeout 60",
)
async def wait_for_operations(
    session: CommandSession,
    operations: OperationsArgument = None,
    project: ProjectOption = None,
    resume: ResumeOption = None,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    targets = await _targets(session, operations, project, resume)
    try:
        await session.wait(targets, timeout=timeout)
    except (NeonError, asyncio.CancelledError):
        if session.operations.records:
            with suppress(OSError):  # the error of the wait is reported anyway
                _show_newest(session)
        raise
    _show_newest(session)


def _show_newest(session: CommandSession) -> None:
    session.screen.show_list(session.operations.records, _view({}))


@command(
    app,
    "watch",
    "Show every status change of operations until all have finished.",
    example="operations watch --output jsonl",
)
async def watch_operations(
    session: CommandSession,
    operations: OperationsArgument = None,
    project: ProjectOption = None,
    resume: ResumeOption = None,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    if session.screen.output in {Output.JSON, Output.YAML}:
        raise ValueError(
            f"watch cannot print --output {session.screen.output}, which is one value: use "
            "--output jsonl"
        )

    def show(operation: Operation) -> None:
        session.screen.show_text(operation, _OPERATION, _line(operation))

    targets = await _targets(session, operations, project, resume)
    await session.wait(targets, timeout=timeout, on_update=show)


async def _targets(
    session: CommandSession,
    operations: Sequence[str] | None,
    project: str | None,
    resume: reference_file.References | None,
) -> Sequence[Operation | OperationRef]:
    """Return the operations to wait for."""
    if resume is not None:
        if operations:
            raise ValueError("--resume and operation ids are both set: use one of them")
        if not resume.operations:
            session.screen.print_message(
                "the file contains no operation: there is nothing to wait for"
            )
        session.resumed = resume.written
        return resume.operations
    project = await project_id(session, project)
    if operations:
        return [OperationRef(project_id=project, id=id) for id in operations]
    newest = await session.neon.operations.list(project, limit=NEWEST).collect(NEWEST)
    found = [operation for operation in newest if is_pending(operation)]
    if not found:
        session.screen.print_message(f"project {project} has no pending operations")
    return found


def _line(operation: Operation) -> Text:
    """Return a status change of an operation as one line."""
    return Text(" ").join(
        [
            Text(f"{datetime.now().astimezone():%H:%M:%S}", "dim"),
            Text(f"{action_label(operation):<18}"),
            Text(f"{printable(status_label(operation)):<11}", status_style(operation)),
            Text(operation.id, "dim"),
            Text(printable(operation.error or "")),
        ]
    )
