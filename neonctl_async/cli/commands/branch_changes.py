"""``neonctl-async branches``: the commands that change a branch."""

from typing import Annotated, Final

import typer
from msgspec.structs import replace

from neonctl_async.cli import completion
from neonctl_async.cli.command import command
from neonctl_async.cli.finishing import finish, outcomes
from neonctl_async.cli.names import branch_id, project_and_branch
from neonctl_async.cli.options import (
    WAIT_SECONDS,
    BranchArgument,
    ExpiresAtOption,
    ExpiresInOption,
    Point,
    PreserveOption,
    ProjectOption,
    TimeoutOption,
    WaitOption,
    at_option,
    expiry,
    or_unset,
)
from neonctl_async.cli.output import View
from neonctl_async.cli.session import CommandSession
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import BranchUpdated

app: Final = typer.Typer()

SELF, PARENT = "^self", "^parent"
"""The words for the branch itself and its parent in options, spelled as in Neon's command line."""

_CHANGED: View[BranchUpdated] = View(
    columns={
        "ID": lambda changed: changed.branch.id,
        "Name": lambda changed: changed.branch.name,
        "Default": lambda changed: "yes" if changed.branch.default else "",
        "Parent": lambda changed: changed.branch.parent_id or "",
        "Expires": lambda changed: changed.branch.expires_at,
        "Operations": lambda changed: outcomes(changed.operations),
    },
    raw=lambda changed: changed.branch.id,
)


@command(app, "rename", "Rename a branch.", example="branches rename $NEON_BRANCH_ID preview-next")
async def rename_branch(
    session: CommandSession,
    branch: BranchArgument,
    name: Annotated[
        str, typer.Argument(metavar="NEW_NAME", help="The new name.", show_default=False)
    ],
    project: ProjectOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    changed = await session.send(session.neon.branches.update(project, branch, name=name))
    done = f"branch {branch} was renamed to {name}"
    await finish(session, changed, _CHANGED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "set-default",
    "Make a branch the default branch of its project.",
    example="branches set-default $NEON_BRANCH_ID",
)
async def set_default_branch(
    session: CommandSession,
    branch: BranchArgument,
    project: ProjectOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    changed = await session.send(session.neon.branches.set_as_default(project, branch))
    done = f"branch {branch} was made the default branch"
    await finish(session, changed, _CHANGED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "protect",
    "Protect a branch from deletion and resets, or remove this protection.",
    example="branches protect $NEON_BRANCH_ID",
)
async def protect_branch(
    session: CommandSession,
    branch: BranchArgument,
    project: ProjectOption = None,
    *,
    off: Annotated[bool, typer.Option("--off", help="Remove the protection.")] = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    changed = await session.send(session.neon.branches.update(project, branch, protected=not off))
    done = f"branch {branch} is {'no longer ' if off else ''}protected"
    await finish(session, changed, _CHANGED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "set-expiration",
    "Set the time at which Neon deletes a branch. Without options, remove this time.",
    example="branches set-expiration $NEON_BRANCH_ID --expires-in 7d",
)
async def set_expiration(
    session: CommandSession,
    branch: BranchArgument,
    project: ProjectOption = None,
    expires_in: ExpiresInOption = None,
    expires_at: ExpiresAtOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    expires_at = expiry(expires_in, expires_at)
    project, branch = await project_and_branch(session, project, branch)
    request = session.neon.branches.update(project, branch, expires_at=expires_at)
    changed = await session.send(request)
    done = f"the expiration of branch {branch} was changed"
    await finish(session, changed, _CHANGED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "reset",
    "Reset a branch to the current state of its parent.",
    example="branches reset $NEON_BRANCH_ID --expires-in 7d",
    asks=True,
)
async def reset_branch(
    session: CommandSession,
    branch: BranchArgument,
    project: ProjectOption = None,
    preserve: PreserveOption = None,
    *,
    expires_in: ExpiresInOption = None,
    expires_at: ExpiresAtOption = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    expires_at = expiry(expires_in, expires_at)
    question = f"Replace the data of branch {branch} of project {project} with that of its parent?"
    project, branch = await project_and_branch(session, project, branch)
    found = await session.neon.branches.get(project, branch)
    if found.parent_id is None:
        raise ValueError(f"branch {branch} has no parent: a root branch cannot be reset")
    from neonctl_async.resources.base import checked_expiry  # imports the HTTP client

    checked_expiry(expires_at, session.neon.server_now())
    if expires_at is not None and (found.default or found.protected):
        kind = "the default branch" if found.default else "protected"
        raise ValueError(f"branch {branch} is {kind}, so it cannot expire: leave out the expiry")
    await session.confirm(question)
    request = session.neon.branches.restore(
        project, branch, source_branch_id=found.parent_id, preserve_under_name=or_unset(preserve)
    )
    changed = await session.send(request)
    done = f"the reset of branch {branch} to its parent was requested"
    if expires_at is not None:  # now, because a refused reset must not leave it behind
        expiring = session.neon.branches.update(project, branch, expires_at=expires_at)
        try:
            changed = replace(changed, branch=(await session.send(expiring)).branch)
        except NeonError:
            session.screen.print_message(f"{done}, but its expiry was not set")
            raise
    await finish(session, changed, _CHANGED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "restore",
    "Restore a branch to the state of another branch, or to its own earlier state.",
    example="branches restore $NEON_BRANCH_ID --source main",
    asks=True,
)
async def restore_branch(
    session: CommandSession,
    branch: BranchArgument,
    project: ProjectOption = None,
    *,
    source: Annotated[
        str,
        typer.Option(
            "--source",
            metavar="BRANCH",
            autocompletion=completion.branches,
            help=f"The id or the name of the source; {SELF} is the branch, {PARENT} its parent.",
        ),
    ] = SELF,
    at: Annotated[Point | None, at_option("the source")] = None,
    preserve: PreserveOption = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    question = f"Replace the data of branch {branch} of project {project}?"
    project, branch = await project_and_branch(session, project, branch)
    source = await source_id(session, project, branch, source, option="--source")
    if source == branch and (at is None or preserve is None):
        raise ValueError(
            "to restore a branch to its own earlier state, set --at and --preserve-under-name; "
            "--source selects another branch"
        )
    await session.confirm(question)
    point = at or Point()
    request = session.neon.branches.restore(
        project,
        branch,
        source_branch_id=source,
        source_lsn=point.lsn,
        source_timestamp=point.time,
        preserve_under_name=or_unset(preserve),
    )
    changed = await session.send(request)
    done = f"the restore of branch {branch} from branch {source} was requested"
    await finish(session, changed, _CHANGED, done=done, wait=wait, timeout=timeout)


async def source_id(
    session: CommandSession, project: str, branch: str, source: str, *, option: str
) -> str:
    """Return the id of the branch that an option selects by id, by name, or as SELF or PARENT."""
    if source == SELF:
        return branch
    if source != PARENT:
        return await branch_id(session, project, source)
    parent = await _parent_id(session, project, branch)
    if parent is None:
        raise ValueError(f"branch {branch} has no parent: set {option} to another branch")
    return parent


async def _parent_id(session: CommandSession, project: str, branch: str) -> str | None:
    return (await session.neon.branches.get(project, branch)).parent_id
