"""``neonctl-async usage``."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import partial
from typing import Annotated, Final, NamedTuple

import msgspec
import typer
from msgspec import UNSET, UnsetType

from neonctl_async.cli import bill
from neonctl_async.cli.bill import Quantities, Range
from neonctl_async.cli.command import command
from neonctl_async.cli.names import project_id, selected_org
from neonctl_async.cli.options import OrgOption, ProjectArgument
from neonctl_async.cli.output import View
from neonctl_async.cli.session import CommandSession
from neonctl_async.models.consumption import BranchMetrics, ProjectMetrics
from neonctl_async.models.projects import Project, ProjectQuota, ProjectSettings

PROJECTS_PER_REQUEST: Final = 100
MAX_PAGE: Final = 400
NAME_REQUESTS: Final = 10
"""How many branch lists are requested at the same time."""

app: Final = typer.Typer()


class By(StrEnum):
    """What each row covers."""

    PROJECT = "project"
    BRANCH = "branch"


class UsageRow(Quantities, frozen=True, kw_only=True):
    """The usage of a project or a branch."""

    project_id: str
    project: str | None
    """The name of the project; None if it is not among the listed projects."""
    branch_id: str | None = None
    branch: str | None = None
    """The name of the branch; None if it was deleted."""


def _view(by: By) -> View[UsageRow]:
    columns: dict[str, Callable[[UsageRow], str]] = {
        "Project": lambda row: row.project or row.project_id,
    }
    if by is By.BRANCH:
        columns["Branch"] = lambda row: row.branch or row.branch_id or ""
    columns |= {
        "CU-hours": lambda row: _number(row.cu_hours),
        "GB-months": lambda row: _number(row.root_storage_gb_months + row.child_storage_gb_months),
        "Transfer GB": lambda row: _number(row.public_transfer_gb + row.private_transfer_gb),
        "History GB-months": lambda row: _number(row.instant_restore_gb_months),
    }
    if by is By.PROJECT:
        columns |= {
            "Snapshots GB-months": lambda row: _number(row.snapshot_gb_months),
            "Branch-months": lambda row: _number(row.child_branch_months),
        }
    return View(columns=columns, raw=lambda row: row.branch_id or row.project_id, whole=())


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a day: expected YYYY-MM-DD") from None


def _month(text: str) -> date:
    try:
        return date.fromisoformat(f"{text}-01")
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a month: expected YYYY-MM") from None


@command(
    app,
    "list",
    "Show what the projects of an organization used, in the units of the bill.\n\n"
    "`neonctl-async usage` is short for this command. Days and months are in UTC.",
    example="usage list --by branch --month 2026-10",
)
async def list_usage(
    session: CommandSession,
    *,
    by: Annotated[By, typer.Option("--by", help="One row per project, or per branch.")] = (
        By.PROJECT
    ),
    month: Annotated[
        date | None,
        typer.Option(
            "--month", metavar="YYYY-MM", parser=_month, help="A month; by default, this month."
        ),
    ] = None,
    first: Annotated[
        date | None,
        typer.Option("--from", metavar="YYYY-MM-DD", parser=_day, help="The first day."),
    ] = None,
    end: Annotated[
        date | None,
        typer.Option(
            "--to",
            metavar="YYYY-MM-DD",
            parser=_day,
            help="The day after the last one; by default, tomorrow.",
        ),
    ] = None,
    org: OrgOption = None,
) -> None:
    days = bill.range_of(month=month, first=first, end=end, now=datetime.now(UTC))
    org_id = await selected_org(session, org) or await _only_organization(session)
    listed = await session.neon.projects.list(org_id=org_id, limit=MAX_PAGE).collect()
    projects = {project.id: project.name for project in listed}
    if by is By.PROJECT:
        records: Sequence[ProjectMetrics | BranchMetrics] = await _of_projects(
            session, org_id, days
        )
    else:
        records = await _of_branches(session, org_id, [*projects], days)
    branches = await _branch_names(session, records)
    rows = [_row(record, projects, branches) for record in records]
    session.screen.show_list(rows, _view(by))


class _Limit(NamedTuple):
    """A project limit: its API field, and the size of its unit."""

    field: str
    size: int


_LIMITS: Final[Mapping[str, _Limit]] = {
    "CU-hours": _Limit("compute_time_seconds", bill.HOUR_SECONDS),
    "Active hours": _Limit("active_time_seconds", bill.HOUR_SECONDS),
    "Written GB": _Limit("written_data_bytes", bill.GB),
    "Transfer GB": _Limit("data_transfer_bytes", bill.GB),
    "Branch size GB": _Limit("logical_size_bytes", bill.GB),
}


def _limit_option(name: str, unit: str, summary: str) -> object:
    return typer.Option(name, metavar=unit, min=0, help=f"{summary} 0 removes the limit.")


@command(
    app,
    "limit",
    "Set the limits of a project, and show them; without options, only show them.\n\n"
    "All limits except the branch size are for one billing period. If a project exceeds one of "
    "those limits, Neon suspends its computes.",
    example="usage limit $NEON_PROJECT_ID --cu-hours 100",
)
async def limit_usage(
    session: CommandSession,
    project: ProjectArgument,
    cu_hours: Annotated[
        float | None, _limit_option("--cu-hours", "HOURS", "Compute time multiplied by the size.")
    ] = None,
    active_hours: Annotated[
        float | None, _limit_option("--active-hours", "HOURS", "Time with a running compute.")
    ] = None,
    written: Annotated[
        float | None, _limit_option("--written-gb", "GB", "Data written to all branches.")
    ] = None,
    transfer: Annotated[
        float | None, _limit_option("--transfer-gb", "GB", "Data sent to clients.")
    ] = None,
    size: Annotated[
        float | None,
        _limit_option(
            "--branch-size-gb", "GB", "The size of each branch; larger branches reject data."
        ),
    ] = None,
) -> None:
    project = await project_id(session, project)
    values = zip(_LIMITS.values(), (cu_hours, active_hours, written, transfer, size), strict=True)
    given = {limit.field: round(value * limit.size) for limit, value in values if value is not None}
    found = await session.neon.projects.get(project)
    if given:
        # Neon does not document whether it keeps the limits that a request leaves out.
        quota = msgspec.structs.replace(_quota(found), **given)
        updated = await session.send(
            session.neon.projects.update(project, settings=ProjectSettings(quota=quota))
        )
        found = updated.project
    session.screen.show(_quota(found), _quota_view(found.id))


def _quota(project: Project) -> ProjectQuota:
    quota = UNSET if project.settings is None else project.settings.quota
    return ProjectQuota() if isinstance(quota, UnsetType) else quota


def _quota_view(id: str) -> View[ProjectQuota]:
    columns: dict[str, Callable[[ProjectQuota], str]] = {"Project": lambda _quota: id}
    columns |= {title: partial(_limit_label, limit) for title, limit in _LIMITS.items()}
    return View(columns=columns, raw=lambda _quota: id)


def _limit_label(limit: _Limit, quota: ProjectQuota) -> str:
    value = getattr(quota, limit.field)
    return f"{value / limit.size:g}" if isinstance(value, int) and value else "no limit"


async def _only_organization(session: CommandSession) -> str:
    found = await session.neon.users.organizations()
    if len(found) == 1:
        return found[0].id
    names = ", ".join(f"{one.name} ({one.id})" for one in found) or "none"
    raise ValueError(f"no organization: set --org or NEON_ORG_ID; those of the account: {names}")


async def _of_projects(session: CommandSession, org_id: str, days: Range) -> list[ProjectMetrics]:
    return await session.neon.consumption.projects_v2(
        org_id=org_id,
        from_=days.from_,
        to=days.to,
        granularity=days.granularity,
        metrics=bill.PROJECT_METRICS,
        limit=PROJECTS_PER_REQUEST,
    ).collect()


async def _of_branches(
    session: CommandSession, org_id: str, project_ids: Sequence[str], days: Range
) -> list[BranchMetrics]:
    found: list[BranchMetrics] = []
    for start in range(0, len(project_ids), PROJECTS_PER_REQUEST):
        found += await session.neon.consumption.branches_v2(
            org_id=org_id,
            project_ids=project_ids[start : start + PROJECTS_PER_REQUEST],
            from_=days.from_,
            to=days.to,
            granularity=days.granularity,
            metrics=bill.BRANCH_METRICS,
        ).collect()
    return found


async def _branch_names(
    session: CommandSession, records: Sequence[ProjectMetrics | BranchMetrics]
) -> dict[str, str]:
    """Return the names of the branches in the records, by id."""
    from neonctl_async.provisioning.fleet.workers import for_each

    names: dict[str, str] = {}

    async def add_names(project_id: str) -> None:
        async for branch in session.neon.branches.list(project_id):
            names[branch.id] = branch.name

    ids = {record.project_id for record in records if isinstance(record, BranchMetrics)}
    await for_each(sorted(ids), add_names, concurrency=NAME_REQUESTS)
    return names


def _row(
    record: ProjectMetrics | BranchMetrics,
    projects: Mapping[str, str],
    branches: Mapping[str, str],
) -> UsageRow:
    branch_id = record.branch_id if isinstance(record, BranchMetrics) else None
    timeframes = [timeframe for period in record.periods for timeframe in period.consumption]
    return UsageRow(
        **msgspec.structs.asdict(bill.quantities(timeframes)),
        project_id=record.project_id,
        project=projects.get(record.project_id),
        branch_id=branch_id,
        branch=branches.get(branch_id or ""),
    )


def _number(value: float) -> str:
    """Format a number with two decimal places; one below 0.01 as ``<0.01``."""
    return "0" if value == 0 else "<0.01" if value < 0.01 else f"{value:.2f}"
