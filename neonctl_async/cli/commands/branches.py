"""``neonctl-async branches``."""

from collections.abc import Mapping
from typing import Annotated, Final

import typer
from msgspec import UNSET

from neonctl_async.cli.command import command
from neonctl_async.cli.finishing import check_connect, connection_uri, finish, outcomes
from neonctl_async.cli.names import (
    branch_id,
    branch_names,
    deleted_branch_id,
    deleted_branches,
    project_and_branch,
    project_id,
)
from neonctl_async.cli.options import (
    WAIT_SECONDS,
    BranchArgument,
    ConnectOption,
    DeletedOption,
    ExpiresAtOption,
    ExpiresInOption,
    LimitOption,
    NameArgument,
    NameOption,
    ParentOption,
    Point,
    ProjectOption,
    SchemaOnlyOption,
    SearchOption,
    SecretsOption,
    SizeOption,
    SuspendOption,
    TimeoutOption,
    WaitOption,
    at_option,
    branch_computes,
    expiry,
    one_name,
    or_unset,
)
from neonctl_async.cli.output import Screen, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.cli.trees import as_tree
from neonctl_async.models.branches import Branch, BranchCreated, BranchDeleted, BranchRecovered

app: Final = typer.Typer()

_PAGE = 1000
_BRANCH: View[Branch] = View(
    columns={
        "ID": lambda branch: branch.id,
        "Name": lambda branch: branch.name,
        "Default": lambda branch: "yes" if branch.default else "",
        "State": lambda branch: branch.current_state,
        "Expires": lambda branch: branch.expires_at,
        "Created": lambda branch: branch.created_at,
        "Parent": lambda branch: branch.parent_id,
        "Protected": lambda branch: "yes" if branch.protected else "",
    },
    raw=lambda branch: branch.id,
    first=("State", "Name"),
)


def _listed(names: Mapping[str, str]) -> View[Branch]:
    """Return the view of a list. ``names`` maps the ids of parents to their names."""
    return _BRANCH.with_column("Parent", lambda one: names.get(one.parent_id or "", one.parent_id))


def _tree(lines: Mapping[str, str]) -> View[Branch]:
    """Return the view of a tree. ``lines``, by branch id, are drawn before the names."""
    named = _BRANCH.with_column("Name", lambda branch: lines[branch.id] + branch.name)
    return named.with_column(
        "Parent", lambda one: None if one.parent_id in lines else one.parent_id
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


_RECOVERED: View[BranchRecovered] = View(
    columns={
        "ID": lambda recovered: recovered.branch.id,
        "Name": lambda recovered: recovered.branch.name,
        "Parent": lambda recovered: recovered.branch.parent_id or "",
        "Computes": lambda recovered: ", ".join(one.id for one in recovered.endpoints),
    },
    raw=lambda recovered: recovered.branch.id,
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
    app,
    "list",
    "List the branches of a project, newest update first; on a terminal, as a tree.",
    example="branches list",
)
async def list_branches(
    session: CommandSession,
    project: ProjectOption = None,
    search: SearchOption = None,
    limit: LimitOption = None,
    *,
    deleted: DeletedOption = False,
) -> None:
    project = await project_id(session, project)
    if deleted:
        found = await deleted_branches(session, project, or_unset(search))
        names = {**await branch_names(session, project), **{one.id: one.name for one in found}}
        session.screen.show_list(found[:limit], _listed(names))
        return
    listed = session.neon.branches.list(
        project, limit=min(limit or _PAGE, _PAGE), search=or_unset(search)
    )
    branches = await listed.collect(limit)
    if session.screen.draws_trees:
        tree = list(as_tree(branches))
        lines = {branch.id: before for branch, before in tree}
        session.screen.show_list([branch for branch, _ in tree], _tree(lines))
    else:
        names = {branch.id: branch.name for branch in branches}
        session.screen.show_list(branches, _listed(names))


@command(app, "get", "Show a branch.", example="branches get $NEON_BRANCH_ID")
async def get_branch(
    session: CommandSession, branch: BranchArgument, project: ProjectOption = None
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    session.screen.show(await session.neon.branches.get(project, branch), _BRANCH)


@command(app, "create", "Create a branch.", example="branches create --name preview")
async def create_branch(
    session: CommandSession,
    named: NameArgument = None,
    project: ProjectOption = None,
    name: NameOption = None,
    parent: ParentOption = None,
    *,
    compute: Annotated[
        bool,
        typer.Option("--compute/--no-compute", help="Create the branch with or without a compute."),
    ] = True,
    at: Annotated[Point | None, at_option("the parent")] = None,
    schema_only: SchemaOnlyOption = False,
    size: SizeOption = None,
    suspend_timeout: SuspendOption = None,
    protected: Annotated[
        bool, typer.Option("--protected", help="Protect the branch from deletion and resets.")
    ] = False,
    expires_in: ExpiresInOption = None,
    expires_at: ExpiresAtOption = None,
    show_secrets: SecretsOption = False,
    wait: WaitOption = True,
    connect: ConnectOption = False,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    session.screen.show_secrets = show_secrets
    name = one_name(named, name)
    check_connect(connect=connect, wait=wait, compute=compute)
    computes = branch_computes(size, suspend_timeout, compute=compute)
    point = at or Point()
    expires_at = expiry(expires_in, expires_at)
    project = await project_id(session, project)
    if parent is not None:
        parent = await branch_id(session, project, parent)
    request = session.neon.branches.create(
        project,
        name=or_unset(name),
        parent_id=or_unset(parent),
        parent_lsn=point.lsn,
        parent_timestamp=point.time,
        init_source="schema-only" if schema_only else UNSET,
        protected=True if protected else UNSET,
        expires_at=or_unset(expires_at),
        endpoints=computes,
    )
    created = await session.send(request)
    done = f"branch {created.branch.id} was created"
    view = _created(session.screen)
    used = created.endpoints if connect else []
    await finish(session, created, view, done=done, wait=wait, timeout=timeout, connect=used)


@command(
    app,
    "delete",
    "Delete a branch. `branches recover` undoes this for seven days.",
    example="branches delete $NEON_BRANCH_ID",
    asks=True,
)
async def delete_branch(
    session: CommandSession,
    branch: BranchArgument,
    project: ProjectOption = None,
    *,
    hard_delete: Annotated[
        bool,
        typer.Option("--hard-delete", help="Delete it permanently: it cannot be recovered."),
    ] = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    how = " permanently" if hard_delete else ""
    question = f"Delete branch {branch} of project {project}{how}?"
    project, branch = await project_and_branch(session, project, branch)
    await session.confirm(question)
    request = session.neon.branches.delete(project, branch, hard_delete=hard_delete or UNSET)
    deleted = await session.send(request)
    done = f"the deletion of branch {branch} was requested"
    await finish(session, deleted, _deleted(branch), done=done, wait=wait, timeout=timeout)


@command(
    app,
    "recover",
    "Recover a deleted branch with its computes. It no longer expires.",
    example="branches recover $NEON_DELETED_BRANCH_ID",
)
async def recover_branch(
    session: CommandSession,
    branch: Annotated[
        str,
        typer.Argument(
            metavar="BRANCH", help="The id or the name of the deleted branch.", show_default=False
        ),
    ],
    project: ProjectOption = None,
) -> None:
    project = await project_id(session, project)
    branch = await deleted_branch_id(session, project, branch)
    recovered = await session.send(session.neon.branches.recover(project, branch))
    session.screen.show(recovered, _RECOVERED)
