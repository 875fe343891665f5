"""``neonctl-async branches``."""

from typing import Annotated, Final

import typer

from neonctl_async.cli.command import command
from neonctl_async.cli.finishing import check_connect, connection_uri, finish, outcomes
from neonctl_async.cli.labels import moment_label
from neonctl_async.cli.names import branch_id, project_and_branch, project_id
from neonctl_async.cli.options import (
    WAIT_SECONDS,
    BranchArgument,
    ConnectOption,
    ExpiresAtOption,
    ExpiresInOption,
    LimitOption,
    NameOption,
    ParentOption,
    ProjectOption,
    SearchOption,
    SecretsOption,
    TimeoutOption,
    WaitOption,
    expiry,
    or_unset,
)
from neonctl_async.cli.output import Screen, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.models.branches import Branch, BranchCreated, BranchDeleted
from neonctl_async.models.endpoints import EndpointSpec, EndpointType

app: Final = typer.Typer()

_PAGE = 1000
_LISTED: View[Branch] = View(
    columns={
        "ID": lambda branch: branch.id,
        "Name": lambda branch: branch.name,
        "Default": lambda branch: "yes" if branch.default else "",
        "State": lambda branch: branch.current_state,
        "Expires": lambda branch: moment_label(branch.expires_at),
        "Created": lambda branch: moment_label(branch.created_at),
    },
    raw=lambda branch: branch.id,
)
_BRANCH: View[Branch] = View(
    columns={**_LISTED.columns, "Parent": lambda branch: branch.parent_id or ""},
    raw=lambda branch: branch.id,
)


def _created(screen: Screen) -> View[BranchCreated]:
    return View(
        columns={
            "ID": lambda created: created.branch.id,
            "Name": lambda created: created.branch.name,
            "Parent": lambda created: created.branch.parent_id or "",
            "Computes": lambda created: ", ".join(one.id for one in created.endpoints),
            "Connection URI": lambda created: connection_uri(screen, created),
            "Operations": lambda created: outcomes(created.operations),
        },
        raw=lambda created: created.branch.id,
    )


def _deleted(branch_id: str) -> View[BranchDeleted]:
    return View(
        columns={
            "Deleted": lambda _deleted: branch_id,
            "Name": lambda deleted: deleted.branch.name if deleted.branch else "",
            "Operations": lambda deleted: outcomes(deleted.operations),
        },
        raw=lambda _deleted: branch_id,
    )


@command(
    app, "list", "List the branches of a project, newest update first.", example="branches list"
)
async def list_branches(
    session: CommandSession,
    project: ProjectOption = None,
    search: SearchOption = None,
    limit: LimitOption = None,
) -> None:
    project = await project_id(session, project)
    listed = session.neon.branches.list(
        project, limit=min(limit or _PAGE, _PAGE), search=or_unset(search)
    )
    session.screen.show_list(await listed.collect(limit), _LISTED)


@command(app, "get", "Show a branch.", example="branches get $NEON_BRANCH_ID")
async def get_branch(
    session: CommandSession, branch: BranchArgument, project: ProjectOption = None
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    session.screen.show(await session.neon.branches.get(project, branch), _BRANCH)


@command(app, "create", "Create a branch.", example="branches create --name preview")
async def create_branch(
    session: CommandSession,
    project: ProjectOption = None,
    name: NameOption = None,
    parent: ParentOption = None,
    *,
    compute: Annotated[
        bool,
        typer.Option("--compute/--no-compute", help="Create the branch with or without a compute."),
    ] = True,
    expires_in: ExpiresInOption = None,
    expires_at: ExpiresAtOption = None,
    show_secrets: SecretsOption = False,
    wait: WaitOption = True,
    connect: ConnectOption = False,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    session.screen.show_secrets = show_secrets
    check_connect(connect=connect, wait=wait, compute=compute)
    expires_at = expiry(expires_in, expires_at)
    project = await project_id(session, project)
    if parent is not None:
        parent = await branch_id(session, project, parent)
    request = session.neon.branches.create(
        project,
        name=or_unset(name),
        parent_id=or_unset(parent),
        expires_at=or_unset(expires_at),
        endpoints=[EndpointSpec(type=EndpointType.READ_WRITE)] if compute else [],
    )
    created = await session.send(request)
    done = f"branch {created.branch.id} was created"
    view = _created(session.screen)
    computes = created.endpoints if connect else []
    await finish(session, created, view, done=done, wait=wait, timeout=timeout, connect=computes)


@command(
    app,
    "delete",
    "Delete a branch.",
    example="branches delete $NEON_BRANCH_ID",
    question="Delete branch {branch} of project {project}?",
)
async def delete_branch(
    session: CommandSession,
    branch: BranchArgument,
    project: ProjectOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    deleted = await session.send(session.neon.branches.delete(project, branch))
    done = f"branch {branch} was deleted"
    await finish(session, deleted, _deleted(branch), done=done, wait=wait, timeout=timeout)
