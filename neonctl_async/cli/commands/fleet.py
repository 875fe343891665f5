"""``neonctl-async fleet``."""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from neonctl_async.cli.command import command
from neonctl_async.cli.commands.branch_prune import confirm_deletion
from neonctl_async.cli.exits import ExitCode
from neonctl_async.cli.names import selected_org
from neonctl_async.cli.options import WAIT_SECONDS, OrgOption, TimeoutOption, WaitOption
from neonctl_async.cli.output import Output, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.cli.styles import Text
from neonctl_async.models.branches import PruneReport

if TYPE_CHECKING:
    from neonctl_async.provisioning.fleet import (
        Fleet,
        FleetPlan,
        FleetReport,
        FleetUpdate,
        Tenant,
        TenantResult,
    )
    from neonctl_async.waiting.waiter import Wait, WaitOptions

app: Final = typer.Typer(
    help="Fleets: create the branches that a file lists, and continue after a failure.",
    no_args_is_help=True,
)


class TenantRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the output: a tenant or an extra branch."""

    project: str
    branch: str
    status: str
    project_id: str | None = None
    branch_id: str | None = None
    details: str = ""


_STYLES: Final = {
    "update": "yellow",
    "differ": "yellow",
    "extra": "yellow",
    "to delete": "yellow",
    "failed": "red",
    "skipped": "yellow",
}
_ROWS: Final[View[TenantRow]] = View(
    columns={
        "Project": lambda row: row.project,
        "Branch": lambda row: row.branch,
        "Status": lambda row: Text(row.status, _STYLES.get(row.status, "")),
        "ID": lambda row: row.branch_id,
        "Details": lambda row: row.details,
    },
    raw=lambda row: row.branch_id or "",
    first=("Status", "Branch", "Project"),
)

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The tenants: a .csv or .jsonl file with the fields project and branch, and any of "
        "parent, init_source, protected, expires_at, compute, compute_name, min_cu, max_cu, "
        "suspend_timeout_seconds, database, role, region and pg_version.",
        exists=True,
        dir_okay=False,
        show_default=False,
    ),
]


def _writable(path: Path | None) -> Path | None:
    """Reject a path that cannot become a private file, before the fleet is created.

    The file is replaced, which would remove a link or a device such as ``/dev/stdout``.
    """
    if path is None:
        return None
    if not path.parent.is_dir() or path.is_symlink() or (path.exists() and not path.is_file()):
        raise typer.BadParameter(f"{path} is not a regular file in an existing directory")
    return path


def _is_same(path: Path, other: Path) -> bool:
    return path.exists() and path.samefile(other)


@command(
    app,
    "plan",
    "Compare the tenants of a file with the existing branches. Changes nothing.",
    example="fleet plan tenants.csv",
)
async def plan_fleet(
    session: CommandSession,
    file: FileArgument,
    org: OrgOption = None,
    *,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Show which branches `fleet apply --prune` would delete or keep, and why.",
        ),
    ] = False,
) -> None:
    fleet = await _fleet(session, file, org)
    plan = await fleet.plan()
    reports = await _dry_run(session, plan) if prune else []
    projects = {one.project_id: one.tenant.project for one in plan.tenants if one.project_id}
    extra = _pruned_rows(reports, projects) if prune else _extra_rows(plan, projects)
    _show(session, [*_planned_rows(plan), *extra, *_failed_rows(plan.failed)])
    session.screen.print_message(str(plan))
    if prune:
        count = sum(len(report.deleted) for report in reports)
        session.screen.print_message(f"branches to delete: {count}")
    if plan.failed:
        raise typer.Exit(ExitCode.OPERATION_FAILED)


@command(
    app,
    "apply",
    "Create the missing branches of a file. Run it again to continue after a failure.",
    example="fleet apply tenants.csv --canary 1",
)
async def apply_fleet(
    session: CommandSession,
    file: FileArgument,
    *,
    org: OrgOption = None,
    canary: Annotated[
        int,
        typer.Option(
            "--canary",
            metavar="N",
            min=0,
            help="Finish N tenants before all others, and stop if one of them fails.",
        ),
    ] = 0,
    concurrency: Annotated[
        int,
        typer.Option(
            "--concurrency",
            metavar="N",
            min=1,
            help="How many tenants are in progress at the same time.",
        ),
    ] = 100,
    connect: Annotated[
        bool,
        typer.Option("--connect", help="Also wait until each compute accepts connections."),
    ] = False,
    uris: Annotated[
        Path | None,
        typer.Option(
            "--uris",
            metavar="FILE",
            callback=_writable,
            help="Write a connection URI per tenant, password included, to this JSONL file, which "
            "only you can read.",
        ),
    ] = None,
    pooled: Annotated[bool, typer.Option("--pooled", help="Write pooled URIs.")] = False,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Change the size, suspend timeout and name of existing computes, and the "
            "protection and expiry of branches.",
        ),
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="At the end, delete the branches of these projects that are not in the file. "
            "Without --yes, show them first.",
        ),
    ] = False,
    skip_question: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Delete without asking. Scripts need it for --prune."),
    ] = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    await _check_options(file, wait=wait, connect=connect, uris=uris, pooled=pooled)
    from neonctl_async.waiting.waiter import WaitOptions

    fleet = await _fleet(session, file, org)
    extra = await _extra(session, fleet, skip_question=skip_question) if prune else {}
    apply = partial(
        fleet.apply,
        canary=canary,
        concurrency=concurrency,
        uris=uris is not None,
        pooled=pooled,
        update=update,
    )
    options = WaitOptions(timeout=timeout, connect=connect) if wait else None
    report = await _run(session, apply, options)
    is_written = uris is None or await _write_uris(session, uris, report)
    pruned = await _prune(session, report, extra, WaitOptions(timeout=timeout) if wait else False)
    if not report.is_complete or any(one.failed for one in pruned):
        raise typer.Exit(ExitCode.OPERATION_FAILED)
    if not is_written:
        raise typer.Exit(ExitCode.OUTPUT_ERROR)


async def _check_options(
    file: Path, *, wait: bool, connect: bool, uris: Path | None, pooled: bool
) -> None:
    """Raise ValueError if options contradict each other."""
    if connect and not wait:
        raise ValueError("--connect and --no-wait contradict each other: leave one of them out")
    if pooled and uris is None:
        raise ValueError("--pooled needs --uris FILE, which receives the URIs")
    if uris is not None and await asyncio.to_thread(_is_same, uris, file):
        raise ValueError(f"--uris is {uris}, which contains the tenants: choose another file")


async def _run(
    session: CommandSession,
    apply: "Callable[..., Awaitable[FleetReport]]",
    options: "WaitOptions | None",
) -> "FleetReport":
    """Apply a fleet. Show its progress, and each failure at once."""

    def print_failure(update: "FleetUpdate") -> None:
        if update.error is not None:
            session.screen.print_message(f"{update.tenant}: {update.error}", "red")

    try:
        with await session.display() as show:
            wait = False if options is None else msgspec.structs.replace(options, on_update=show)
            return await apply(wait=wait, on_update=print_failure)
    except asyncio.CancelledError:
        session.screen.print_message("run the same command again to continue")
        raise


async def _prune(
    session: CommandSession,
    report: "FleetReport",
    extra: Mapping[str, list[str]],
    wait: "Wait",
) -> list[PruneReport]:
    """Delete the extra branches of a complete fleet. Show them and the fleet, even after an error.

    ``extra`` maps project ids to the ids of these branches.
    """
    pruned: list[PruneReport] = []
    try:
        for project_id, ids in extra.items() if report.is_complete else ():
            pruned.append(
                await session.neon.branches.prune(project_id, names=ids, apply=True, wait=wait)
            )
    finally:
        projects = {one.project_id: tenant.project for tenant, one in report.succeeded.items()}
        _show(session, [*_reported_rows(report), *_pruned_rows(pruned, projects)])
        session.screen.print_message(str(report))
    if extra and not report.is_complete:
        session.screen.print_message("no branch was deleted, because the fleet is not complete")
    return pruned


async def _fleet(session: CommandSession, file: Path, org: str | None) -> "Fleet":
    from neonctl_async.provisioning.fleet import Fleet, read_tenants

    tenants = await asyncio.to_thread(read_tenants, file)
    return Fleet(session.neon, tenants, org_id=await selected_org(session, org))


async def _extra(
    session: CommandSession, fleet: "Fleet", *, skip_question: bool
) -> dict[str, list[str]]:
    """Ask whether to delete the extra branches. Return their ids by project, if confirmed."""
    reports = await _dry_run(session, await fleet.plan())
    doomed = [branch for report in reports for branch in report.deleted]
    for kept in (kept for report in reports for kept in report.kept):
        session.screen.print_message(f"kept {kept.branch.name} ({kept.branch.id}): {kept.reason}")
    if doomed and not skip_question:
        if session.asks:
            await confirm_deletion(session, doomed, "the projects of the fleet")
        else:
            for branch in doomed:
                session.screen.print_message(f"would delete {branch.name} ({branch.id})")
            session.screen.print_message(f"branches to delete: {len(doomed)}; --yes deletes them")
            return {}
    return {
        report.deleted[0].project_id: [branch.id for branch in report.deleted]
        for report in reports
        if report.deleted
    }


async def _dry_run(session: CommandSession, plan: "FleetPlan") -> list[PruneReport]:
    """Return, for each project, which extra branches a deletion would delete or keep."""
    found: dict[str, list[str]] = {}
    for branch in plan.extra:
        found.setdefault(branch.project_id, []).append(branch.id)
    return [await session.neon.branches.prune(id, names=ids) for id, ids in found.items()]


def _show(session: CommandSession, rows: Iterable[TenantRow]) -> None:
    """Show the rows. ``--output raw`` leaves out the tenants without a branch."""
    is_raw = session.screen.output is Output.RAW
    session.screen.show_list([row for row in rows if row.branch_id or not is_raw], _ROWS)


def _planned_rows(plan: "FleetPlan") -> Iterator[TenantRow]:
    for planned in plan.tenants:
        yield TenantRow(
            project=planned.tenant.project,
            branch=planned.tenant.branch,
            status=planned.action,
            project_id=planned.project_id,
            branch_id=planned.branch.id if planned.branch else None,
            details="; ".join(planned.differences),
        )


def _extra_rows(plan: "FleetPlan", projects: "Mapping[str, str]") -> Iterator[TenantRow]:
    """Yield the extra branches. ``projects`` maps ids to the names in the file."""
    for branch in plan.extra:
        yield TenantRow(
            project=projects.get(branch.project_id, branch.project_id),
            branch=branch.name,
            status="extra",
            project_id=branch.project_id,
            branch_id=branch.id,
        )


def _reported_rows(report: "FleetReport") -> Iterator[TenantRow]:
    for tenant, result in report.succeeded.items():
        yield TenantRow(
            project=tenant.project,
            branch=tenant.branch,
            status=_status(result),
            project_id=result.project_id,
            branch_id=result.branch_id,
        )
    yield from _failed_rows(report.failed)
    for tenant in report.skipped:
        yield TenantRow(project=tenant.project, branch=tenant.branch, status="skipped")


def _status(result: "TenantResult") -> str:
    if result.created:
        return "created"
    return "updated" if result.updated else "adopted"


def _pruned_rows(
    reports: Iterable[PruneReport], projects: "Mapping[str, str]"
) -> Iterator[TenantRow]:
    for report in reports:
        done = "deleted" if report.applied else "to delete"
        results = [(branch, done, "") for branch in report.deleted]
        results += [(kept.branch, "kept", kept.reason) for kept in report.kept]
        results += [(failed.branch, "failed", failed.error) for failed in report.failed]
        for branch, status, details in results:
            yield TenantRow(
                project=projects.get(branch.project_id, branch.project_id),
                branch=branch.name,
                status=status,
                project_id=branch.project_id,
                branch_id=branch.id,
                details=details,
            )


def _failed_rows(failed: "Mapping[Tenant, Exception]") -> Iterator[TenantRow]:
    for tenant, error in failed.items():
        yield TenantRow(
            project=tenant.project, branch=tenant.branch, status="failed", details=str(error)
        )


async def _write_uris(session: CommandSession, path: Path, report: "FleetReport") -> bool:
    """Write the URIs to a file. If this fails, print a message and return False."""
    try:
        await asyncio.to_thread(_replace_private, path, _uri_lines(report.succeeded.values()))
    except OSError as error:
        session.screen.print_message(
            f"error: cannot write {path}: {error.strerror}. Run the command again with another "
            "--uris",
            "bold red",
        )
        return False
    return True


def _uri_lines(results: "Iterable[TenantResult]") -> bytes:
    return b"".join(
        msgspec.json.encode(
            {
                "project": result.tenant.project,
                "branch": result.tenant.branch,
                "project_id": result.project_id,
                "branch_id": result.branch_id,
                "connection_uri": result.connection_uri.reveal(),
            }
        )
        + b"\n"
        for result in results
        if result.connection_uri is not None
    )


def _replace_private(path: Path, content: bytes) -> None:
    """Replace a file atomically with a new file that only its owner can read."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        temporary.replace(path)
    except OSError:
        temporary.unlink()
        raise
