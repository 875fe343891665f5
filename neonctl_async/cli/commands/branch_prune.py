"""``neonctl-async branches prune``."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer
from msgspec import Struct
from msgspec.structs import replace

from neonctl_async.cli.command import command
from neonctl_async.cli.names import project_id
from neonctl_async.cli.options import (
    WAIT_SECONDS,
    ProjectOption,
    TimeoutOption,
    WaitOption,
    duration,
    standard_input,
)
from neonctl_async.cli.output import Output, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import Branch, PruneReport

app: Final = typer.Typer()

_MAX_NAMES = 20
_NO_CRITERION: Final = (
    "no criterion: set at least one of --prefix, --match, --name, --names-from, --older-than and "
    "--idle-for"
)


class PrunedBranch(Struct, frozen=True, kw_only=True):
    """A row of the output: a branch, and the reason if it was not deleted."""

    result: str
    """``to delete`` in a dry run, otherwise ``deleted``; ``kept`` or ``failed``."""
    id: str
    name: str
    reason: str | None = None


_VIEW: View[PrunedBranch] = View(
    columns={
        "Name": lambda row: row.name,
        "Result": lambda row: row.result,
        "Reason": lambda row: row.reason or "",
    },
    raw=lambda row: row.id,
    whole=("Name",),
    first=("Result", "Name"),
)


class NamesFile(NamedTuple):
    """The names in a file, one per line."""

    names: Sequence[str]


def _read_names(file: str) -> NamesFile:
    """Read the file of ``--names-from``; ``-`` is standard input."""
    try:
        text = standard_input() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}") from None
    return NamesFile([line.strip() for line in text.splitlines() if line.strip()])


@command(
    app,
    "prune",
    "Delete branches by name, age or last use; without --apply, only show them.",
    example="branches prune --prefix preview/ --idle-for 3d",
    asks=True,
)
async def prune_branches(
    session: CommandSession,
    *,
    project: ProjectOption = None,
    prefix: Annotated[
        str | None, typer.Option("--prefix", metavar="TEXT", help="The start of the name.")
    ] = None,
    match: Annotated[
        str | None,
        typer.Option("--match", metavar="GLOB", help="A pattern for the whole name, with * and ?."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="NAME", help="An exact name or an id. Can be repeated."),
    ] = None,
    names_from: Annotated[
        NamesFile | None,
        typer.Option(
            "--names-from",
            metavar="FILE",
            parser=_read_names,
            help="A file with one exact name or id per line; - is standard input.",
        ),
    ] = None,
    older_than: Annotated[
        timedelta | None,
        typer.Option(
            "--older-than", metavar="DURATION", parser=duration, help="The minimum age, e.g. 7d."
        ),
    ] = None,
    idle_for: Annotated[
        timedelta | None,
        typer.Option(
            "--idle-for",
            metavar="DURATION",
            parser=duration,
            help="The minimum time since the last use, e.g. 12h.",
        ),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Delete the branches.")] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Also show branches whose names do not match.")
    ] = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    names = _names(name, names_from)
    if all(each is None for each in (prefix, match, names, older_than, idle_for)):
        raise ValueError(_NO_CRITERION)
    project = await project_id(session, project)
    prune = partial(
        session.neon.branches.prune,
        project,
        name_prefix=prefix,
        pattern=match,
        names=names,
        older_than=older_than,
        idle_for=idle_for,
        report_all=show_all,
    )
    if not apply or session.asks:
        report = await prune()
        if not apply or not report.deleted:
            _show(session, report)
            return
        await confirm_deletion(session, report.deleted, f"project {project}")
        prune = partial(_prune_shown, prune, report)
    await _apply(session, prune, timeout=timeout if wait else None)


async def _prune_shown(
    prune: Callable[..., Awaitable[PruneReport]], shown: PruneReport, **options: object
) -> PruneReport:
    """Delete only the branches that a dry run showed. Also report what else the dry run found."""
    ids = [branch.id for branch in shown.deleted]
    report = await prune(**options, names=ids, report_all=False)
    gone = [branch for branch in shown.deleted if branch.id in report.not_found]
    return replace(
        report,
        deleted=[*gone, *report.deleted],
        kept=[*shown.kept, *report.kept],
        not_found=shown.not_found,
    )


def _names(names: Sequence[str] | None, file: NamesFile | None) -> list[str] | None:
    """Return the names from both options, or None if neither is set."""
    if not names and file is None:
        return None
    return [*(names or ()), *(file.names if file else ())]


async def _apply(
    session: CommandSession,
    prune: Callable[..., Awaitable[PruneReport]],
    *,
    timeout: float | None,
) -> None:
    try:
        report = await prune(apply=True, on_deleted=_progress(session))
    except asyncio.CancelledError as error:
        for note in getattr(error, "__notes__", ()):
            session.screen.print_message(note)
        raise
    session.names.assumed.clear()  # the command must not run again
    try:
        if timeout is not None:
            await session.wait(report.operations, timeout=timeout)
    except (NeonError, asyncio.CancelledError):
        with suppress(OSError):  # the error of the wait is reported anyway
            _show(session, report)
        raise
    _show(session, report)
    if report.failed:
        total = len(report.deleted) + len(report.failed)
        raise NeonError(f"{len(report.failed)} of {total} branches could not be deleted")


def _progress(session: CommandSession) -> Callable[[Branch], None] | None:
    """Return a function that prints each deleted branch, or None if no user is watching."""
    if not sys.stderr.isatty():
        return None
    return lambda branch: session.screen.print_message(f"deleted {branch.name} ({branch.id})")


def _show(session: CommandSession, report: PruneReport) -> None:
    only_deleted = session.screen.output is Output.RAW
    session.screen.show_list(list(_rows(report, only_deleted=only_deleted)), _VIEW)
    if report.not_found:
        shown = ", ".join(report.not_found[:_MAX_NAMES])
        more = len(report.not_found) - _MAX_NAMES
        shown += f" and {more} more" if more > 0 else ""
        session.screen.print_message(f"names without a branch: {shown}")
    count = len(report.deleted)
    if not report.applied:
        hint = "; --apply deletes them" if count else ""
        session.screen.print_message(f"branches to delete: {count}{hint}")
    elif not count:
        session.screen.print_message("branches deleted: 0")


def _rows(report: PruneReport, *, only_deleted: bool) -> Iterator[PrunedBranch]:
    result = "deleted" if report.applied else "to delete"
    for branch in report.deleted:
        yield PrunedBranch(result=result, id=branch.id, name=branch.name)
    if only_deleted:
        return
    for failed in report.failed:
        yield PrunedBranch(
            result="failed", id=failed.branch.id, name=failed.branch.name, reason=failed.error
        )
    for kept in report.kept:
        yield PrunedBranch(
            result="kept", id=kept.branch.id, name=kept.branch.name, reason=kept.reason
        )


async def confirm_deletion(session: CommandSession, branches: Sequence[Branch], of: str) -> None:
    """Show the names of the branches, and ask for confirmation. Exit if the user declines."""
    for branch in branches[:_MAX_NAMES]:
        session.screen.print_message(f"{branch.name} ({branch.id})")
    if len(branches) > _MAX_NAMES:
        session.screen.print_message(f"and {len(branches) - _MAX_NAMES} more")
    count = "1 branch" if len(branches) == 1 else f"{len(branches)} branches"
    await session.confirm(f"Delete {count} of {of}?")
