"""``neonctl-async snapshots``."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

import typer
from msgspec import UNSET, UnsetType

from neonctl_async.cli import completion
from neonctl_async.cli.command import command
from neonctl_async.cli.finishing import finish, outcomes, outcomes_view
from neonctl_async.cli.names import (
    branch_id,
    branch_names,
    project_and_branch,
    project_id,
    snapshot_id,
)
from neonctl_async.cli.options import (
    WAIT_SECONDS,
    BranchArgument,
    BranchOption,
    ExpiresAtOption,
    ExpiresInOption,
    NameOption,
    Point,
    ProjectOption,
    RetentionOption,
    TimeoutOption,
    WaitOption,
    at_option,
    check_change,
    expiry,
    or_unset,
    period_text,
)
from neonctl_async.cli.output import Cell, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.models.snapshots import (
    BackupScheduleItem,
    Snapshot,
    SnapshotCreated,
    SnapshotRestored,
)

app: Final = typer.Typer()


class Frequency(StrEnum):
    """How often a schedule creates snapshots."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    NEVER = "never"


SnapshotArgument = Annotated[
    str,
    typer.Argument(
        metavar="SNAPSHOT",
        autocompletion=completion.snapshots,
        help="The id or the name of the snapshot.",
        show_default=False,
    ),
]

_SNAPSHOT: View[Snapshot] = View(
    columns={
        "ID": lambda snapshot: snapshot.id,
        "Name": lambda snapshot: snapshot.name,
        "Branch": lambda snapshot: snapshot.source_branch_id or "",
        "Created": lambda snapshot: _time(snapshot.created_at),
        "Expires": lambda snapshot: _time(snapshot.expires_at),
    },
    raw=lambda snapshot: snapshot.id,
)
_CREATED: View[SnapshotCreated] = View(
    columns={
        "ID": lambda created: created.snapshot.id,
        "Name": lambda created: created.snapshot.name,
        "Branch": lambda created: created.snapshot.source_branch_id or "",
        "Expires": lambda created: _time(created.snapshot.expires_at),
        "Operations": lambda created: outcomes(created.operations),
    },
    raw=lambda created: created.snapshot.id,
)
_RESTORED: View[SnapshotRestored] = View(
    columns={
        "ID": lambda restored: restored.branch.id,
        "Name": lambda restored: restored.branch.name,
        "Computes": lambda restored: ", ".join(one.id for one in restored.endpoints),
        "Operations": lambda restored: outcomes(restored.operations),
    },
    raw=lambda restored: restored.branch.id,
)


_RULE: View[BackupScheduleItem] = View(
    columns={
        "Frequency": lambda rule: rule.frequency,
        "Hour": lambda rule: _number(rule.hour),
        "Day": lambda rule: _number(rule.day),
        "Month": lambda rule: _number(rule.month),
        "Retention": lambda rule: (
            "forever" if rule.retention_seconds is UNSET else period_text(rule.retention_seconds)
        ),
    },
    raw=lambda rule: rule.frequency,
    whole=(),
    first=("Frequency",),
)


_DAYS: Final = {Frequency.WEEKLY: 7, Frequency.MONTHLY: 31}


def _check_rule(frequency: Frequency, hour: int | None, day: int | None) -> None:
    """Raise ValueError, naming the missing options, if a rule is incomplete."""
    missing = ["--hour N, from 0 to 23 in UTC"] if hour is None else []
    if frequency in _DAYS and day is None:
        missing.append(f"--day N, from 1 to {_DAYS[frequency]}")
    if missing:
        raise ValueError(f"a {frequency} schedule needs {', and '.join(missing)}")


def _number(number: int | UnsetType) -> str:
    return "" if isinstance(number, UnsetType) else str(number)


def _time(text: str | None) -> Cell:
    """Parse a time. Return other strings unchanged, because Neon does not specify the format."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return text
    return time if time.tzinfo else text


@command(app, "list", "List the snapshots of a project.", example="snapshots list")
async def list_snapshots(session: CommandSession, project: ProjectOption = None) -> None:
    project = await project_id(session, project)
    listed = await session.neon.snapshots.list(project)
    names = await branch_names(session, project)
    view = _SNAPSHOT.with_column(
        "Branch", lambda one: names.get(one.source_branch_id or "", one.source_branch_id)
    )
    session.screen.show_list(listed, view)


@command(
    app,
    "create",
    "Create a snapshot of a branch.",
    example="snapshots create --name friday --expires-in 30d",
)
async def create_snapshot(
    session: CommandSession,
    project: ProjectOption = None,
    branch: BranchOption = None,
    name: NameOption = None,
    *,
    slug: Annotated[
        str | None,
        typer.Option(
            "--slug",
            metavar="SLUG",
            help="A second name, unique in the project: lowercase letters, digits and hyphens.",
        ),
    ] = None,
    at: Annotated[Point | None, at_option("the branch")] = None,
    expires_in: ExpiresInOption = None,
    expires_at: ExpiresAtOption = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    expires_at = expiry(expires_in, expires_at)
    point = at or Point()
    project, branch = await project_and_branch(session, project, branch)
    request = session.neon.snapshots.create(
        project,
        branch,
        name=or_unset(name),
        slug=or_unset(slug),
        lsn=point.lsn,
        timestamp=point.time,
        expires_at=or_unset(expires_at),
    )
    created = await session.send(request)
    done = f"snapshot {created.snapshot.id} was created"
    await finish(session, created, _CREATED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "update",
    "Rename a snapshot, or change when Neon deletes it.",
    example="snapshots update $NEON_SNAPSHOT_ID --expires-in 30d",
)
async def update_snapshot(
    session: CommandSession,
    snapshot: SnapshotArgument,
    project: ProjectOption = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The new name.")
    ] = None,
    *,
    expires_in: ExpiresInOption = None,
    expires_at: ExpiresAtOption = None,
    keep: Annotated[
        bool | None, typer.Option("--no-expiry", help="Keep it until somebody deletes it.")
    ] = None,
) -> None:
    expires_at = expiry(expires_in, expires_at)
    check_change(name=name, expires_in=expires_at, no_expiry=keep)
    if keep and expires_at is not None:
        raise ValueError("--no-expiry contradicts --expires-in and --expires-at: leave it out")
    project = await project_id(session, project)
    snapshot = await snapshot_id(session, project, snapshot)
    request = session.neon.snapshots.update(
        project,
        snapshot,
        name=or_unset(name),
        expires_at=None if keep else or_unset(expires_at),
    )
    session.screen.show(await session.send(request), _SNAPSHOT)


@command(
    app,
    "schedule",
    "Set the snapshot schedule of a branch, and show it; without --frequency, only show it.",
    example="snapshots schedule --frequency daily --hour 3",
)
async def schedule_snapshots(
    session: CommandSession,
    project: ProjectOption = None,
    branch: BranchOption = None,
    *,
    frequency: Annotated[
        Frequency | None,
        typer.Option("--frequency", help="How often; 'never' removes the schedule."),
    ] = None,
    hour: Annotated[
        int | None, typer.Option("--hour", metavar="N", min=0, max=23, help="The hour, in UTC.")
    ] = None,
    day: Annotated[
        int | None,
        typer.Option("--day", metavar="N", min=1, max=31, help="The day of the week or the month."),
    ] = None,
    retention: RetentionOption = None,
) -> None:
    given = {"hour": hour, "day": day, "retention_seconds": retention}
    rule = {name: value for name, value in given.items() if value is not None}
    if rule and frequency in {None, Frequency.NEVER}:
        raise ValueError("--hour, --day and --retention need a --frequency")
    if frequency is not None and frequency is not Frequency.NEVER:
        _check_rule(frequency, hour, day)
    project, branch = await project_and_branch(session, project, branch)
    if frequency is not None:
        is_none = frequency is Frequency.NEVER
        rules = [] if is_none else [BackupScheduleItem(frequency=frequency, **rule)]
        await session.send(session.neon.snapshots.set_schedule(project, branch, schedule=rules))
    shown = await session.neon.snapshots.get_schedule(project, branch)
    session.screen.show_list(shown.schedule, _RULE)


@command(
    app,
    "restore",
    "Restore a snapshot to a new branch.\n\n"
    "With --finalize, the new branch takes the place of another one. Without it, you can check the "
    "new branch first, and then run `snapshots finalize`.",
    example="snapshots restore $NEON_SNAPSHOT_ID --name recovered",
)
async def restore_snapshot(
    session: CommandSession,
    snapshot: SnapshotArgument,
    project: ProjectOption = None,
    name: NameOption = None,
    *,
    target: Annotated[
        str | None,
        typer.Option(
            "--target-branch",
            metavar="BRANCH",
            autocompletion=completion.branches,
            help="The id or the name of the branch to replace; by default, the branch of the "
            "snapshot.",
        ),
    ] = None,
    finalize: Annotated[
        bool,
        typer.Option(
            "--finalize", help="Replace the branch at once. It is kept under another name."
        ),
    ] = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    project = await project_id(session, project)
    snapshot = await snapshot_id(session, project, snapshot)
    if target is not None:
        target = await branch_id(session, project, target)
    request = session.neon.snapshots.restore(
        project,
        snapshot,
        name=or_unset(name),
        target_branch_id=or_unset(target),
        finalize_restore=finalize,
    )
    restored = await session.send(request)
    done = f"the restore of snapshot {snapshot} to branch {restored.branch.id} was requested"
    await finish(session, restored, _RESTORED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "finalize",
    "Replace a branch with the one that a snapshot was restored to.\n\n"
    "The restored branch takes over the name and the computes of the replaced branch. This closes "
    "the connections of these computes.",
    example="snapshots finalize $NEON_RESTORED_BRANCH_ID",
    asks=True,
)
async def finalize_restore(
    session: CommandSession,
    branch: BranchArgument,
    project: ProjectOption = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="The new name of the replaced branch; by default, Neon generates one.",
        ),
    ] = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    question = f"Replace a branch of project {project} with branch {branch}?"
    project, branch = await project_and_branch(session, project, branch)
    await session.confirm(question)
    request = session.neon.branches.finalize_restore(project, branch, name=or_unset(name))
    finalized = await session.send(request)
    done = f"the finalization of branch {branch} was requested"
    view = outcomes_view("Finalized", branch)
    await finish(session, finalized, view, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "delete",
    "Delete a snapshot.",
    example="snapshots delete $NEON_SNAPSHOT_ID",
    asks=True,
)
async def delete_snapshot(
    session: CommandSession,
    snapshot: SnapshotArgument,
    project: ProjectOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    question = f"Delete snapshot {snapshot} of project {project} permanently?"
    project = await project_id(session, project)
    snapshot = await snapshot_id(session, project, snapshot)
    await session.confirm(question)
    deleted = await session.send(session.neon.snapshots.delete(project, snapshot))
    done = f"the deletion of snapshot {snapshot} was requested"
    view = outcomes_view("Deleted", snapshot)
    await finish(session, deleted, view, done=done, wait=wait, timeout=timeout)
