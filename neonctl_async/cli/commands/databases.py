"""``neonctl-async databases``."""

from typing import Annotated, Final

import typer

from neonctl_async.cli import completion
from neonctl_async.cli.command import command
from neonctl_async.cli.finishing import finish, outcomes, outcomes_view
from neonctl_async.cli.names import branch_names, found, project_and_branch
from neonctl_async.cli.options import (
    WAIT_SECONDS,
    BranchOption,
    ProjectOption,
    TimeoutOption,
    WaitOption,
)
from neonctl_async.cli.output import View
from neonctl_async.cli.session import CommandSession
from neonctl_async.models.databases import Database, DatabaseUpdated

app: Final = typer.Typer()

DatabaseArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATABASE",
        autocompletion=completion.databases,
        help="The name of the database.",
        show_default=False,
    ),
]

_DATABASE: View[Database] = View(
    columns={
        "Name": lambda database: database.name,
        "Owner": lambda database: database.owner_name,
        "Branch": lambda database: database.branch_id,
        "Created": lambda database: database.created_at,
    },
    raw=lambda database: database.name,
    whole=("Name", "Branch"),
)
_CREATED: View[DatabaseUpdated] = View(
    columns={
        "Name": lambda created: created.database.name,
        "Owner": lambda created: created.database.owner_name,
        "Branch": lambda created: created.database.branch_id,
        "Operations": lambda created: outcomes(created.operations),
    },
    raw=lambda created: created.database.name,
)


@command(app, "list", "List the databases of a branch.", example="databases list --branch main")
async def list_databases(
    session: CommandSession, project: ProjectOption = None, branch: BranchOption = None
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    listed = await session.neon.databases.list(project, branch)
    names = await branch_names(session, project)
    view = _DATABASE.with_column("Branch", lambda one: names.get(one.branch_id, one.branch_id))
    session.screen.show_list(listed, view)


@command(app, "get", "Show a database.", example="databases get neondb")
async def get_database(
    session: CommandSession,
    database: DatabaseArgument,
    project: ProjectOption = None,
    branch: BranchOption = None,
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    call = session.neon.databases.get(project, branch, database)
    session.screen.show(
        await found(session, call, "database", project, branch, database), _DATABASE
    )


@command(
    app,
    "create",
    "Create a database.",
    example="databases create --name orders --owner-name $NEON_ROLE",
)
async def create_database(
    session: CommandSession,
    name: Annotated[
        str,
        typer.Option(
            "--name", metavar="NAME", help="The name of the database.", show_default=False
        ),
    ],
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner-name",
            metavar="ROLE",
            autocompletion=completion.roles,
            help="The role that owns the database; by default, the only role of the branch.",
        ),
    ] = None,
    project: ProjectOption = None,
    branch: BranchOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    owner = await _only_role(session, project, branch) if owner is None else owner
    request = session.neon.databases.create(project, branch, name=name, owner_name=owner)
    created = await session.send(request)
    done = f"database {name} was created on branch {branch}"
    await finish(session, created, _CREATED, done=done, wait=wait, timeout=timeout)


async def _only_role(session: CommandSession, project: str, branch: str) -> str:
    """Return the only role of a branch, not counting the roles that Neon manages."""
    roles = [
        role.name for role in await session.neon.roles.list(project, branch) if not role.protected
    ]
    if len(roles) != 1:
        raise ValueError(
            f"branch {branch} has {len(roles)} roles: set --owner-name to one of them: "
            f"{', '.join(roles)}"
            if roles
            else f"branch {branch} has no role: create one with `roles create`"
        )
    return roles[0]


@command(
    app,
    "delete",
    "Delete a database and its data.",
    example="databases delete neondb",
    asks=True,
)
async def delete_database(
    session: CommandSession,
    database: DatabaseArgument,
    project: ProjectOption = None,
    branch: BranchOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    question = f"Delete database {database} of project {project}, and its data?"
    project, branch = await project_and_branch(session, project, branch)
    await session.confirm(question)
    call = session.send(session.neon.databases.delete(project, branch, database))
    deleted = await found(session, call, "database", project, branch, database)
    done = f"the deletion of database {database} from branch {branch} was requested"
    await finish(
        session, deleted, outcomes_view("Deleted", database), done=done, wait=wait, timeout=timeout
    )
