"""``neonctl-async projects``."""

from typing import Annotated, Final

import typer
from msgspec import UNSET

from neonctl_async.cli.command import command
from neonctl_async.cli.finishing import check_connect, connection_uri, finish, outcomes
from neonctl_async.cli.names import project_id, selected_org
from neonctl_async.cli.options import (
    WAIT_SECONDS,
    ConnectOption,
    DeletedOption,
    HistoryOption,
    LimitOption,
    NameOption,
    OrgOption,
    ProjectArgument,
    SearchOption,
    SecretsOption,
    SizeOption,
    SuspendOption,
    TimeoutOption,
    WaitOption,
    check_change,
    compute_limits,
    or_unset,
    unless_empty,
)
from neonctl_async.cli.output import Screen, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.models.projects import (
    DefaultEndpointSettings,
    Project,
    ProjectBranchSpec,
    ProjectCreated,
    ProjectDeleted,
    ProjectRecovered,
    ProjectUpdated,
)

MAX_PAGE = 400
app: Final = typer.Typer()

_PROJECT: View[Project] = View(
    columns={
        "ID": lambda project: project.id,
        "Name": lambda project: project.name,
        "Region": lambda project: project.region_id,
        "Postgres": lambda project: str(project.pg_version),
        "Created": lambda project: project.created_at,
    },
    raw=lambda project: project.id,
)
_CHANGED: View[ProjectUpdated | ProjectRecovered] = View(
    columns={
        "ID": lambda changed: changed.project.id,
        "Name": lambda changed: changed.project.name,
        "Operations": lambda changed: outcomes(changed.operations),
    },
    raw=lambda changed: changed.project.id,
)
_DELETED: View[ProjectDeleted] = View(
    columns={
        "Deleted": lambda deleted: deleted.project.id,
        "Name": lambda deleted: deleted.project.name,
        "Operations": lambda deleted: outcomes(deleted.operations),
    },
    raw=lambda deleted: deleted.project.id,
)


def _created(screen: Screen) -> View[ProjectCreated]:
    return View(
        columns={
            "ID": lambda created: created.project.id,
            "Name": lambda created: created.project.name,
            "Region": lambda created: created.project.region_id,
            "Branch": lambda created: f"{created.branch.name} ({created.branch.id})",
            "Connection URI": lambda created: connection_uri(screen, created),
            "Operations": lambda created: outcomes(created.operations),
        },
        raw=lambda created: created.project.id,
    )


@command(app, "list", "List the projects that the API key can access.", example="projects list")
async def list_projects(
    session: CommandSession,
    search: SearchOption = None,
    org: OrgOption = None,
    limit: LimitOption = None,
    *,
    deleted: DeletedOption = False,
) -> None:
    org = await selected_org(session, org)
    listed = session.neon.projects.list(
        limit=min(limit or MAX_PAGE, MAX_PAGE),
        search=or_unset(search),
        org_id=or_unset(org),
        recoverable=deleted or UNSET,
    )
    session.screen.show_list(await listed.collect(limit), _PROJECT)


@command(app, "get", "Show a project.", example="projects get $NEON_PROJECT_ID")
async def get_project(session: CommandSession, project: ProjectArgument) -> None:
    project = await project_id(session, project)
    session.screen.show(await session.neon.projects.get(project), _PROJECT)


@command(
    app,
    "create",
    "Create a project with a branch, a compute, a role and a database.",
    example="projects create --name shop --cu 0.25-2",
)
async def create_project(
    session: CommandSession,
    name: NameOption = None,
    region: Annotated[
        str | None,
        typer.Option("--region", metavar="REGION_ID", help="The region, e.g. aws-us-east-2."),
    ] = None,
    pg_version: Annotated[
        int | None, typer.Option("--pg-version", metavar="N", help="The version of Postgres.")
    ] = None,
    org: OrgOption = None,
    *,
    branch: Annotated[
        str | None,
        typer.Option("--branch", metavar="NAME", help="The name of its branch; by default, main."),
    ] = None,
    database: Annotated[
        str | None, typer.Option("--database", metavar="NAME", help="The name of its database.")
    ] = None,
    role: Annotated[
        str | None, typer.Option("--role", metavar="NAME", help="The role that owns the database.")
    ] = None,
    size: SizeOption = None,
    suspend_timeout: SuspendOption = None,
    history: HistoryOption = None,
    show_secrets: SecretsOption = False,
    wait: WaitOption = True,
    connect: ConnectOption = False,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    session.screen.show_secrets = show_secrets
    check_connect(connect=connect, wait=wait)
    org = await selected_org(session, org)
    request = session.neon.projects.create(
        name=or_unset(name),
        region_id=or_unset(region),
        pg_version=or_unset(pg_version),
        org_id=or_unset(org),
        branch=unless_empty(
            ProjectBranchSpec(
                name=or_unset(branch), database_name=or_unset(database), role_name=or_unset(role)
            )
        ),
        default_endpoint_settings=unless_empty(
            DefaultEndpointSettings(**compute_limits(size, suspend_timeout))
        ),
        history_retention_seconds=or_unset(history),
    )
    created = await session.send(request)
    done = f"project {created.project.id} was created"
    view = _created(session.screen)
    computes = created.endpoints if connect else []
    await finish(session, created, view, done=done, wait=wait, timeout=timeout, connect=computes)


@command(
    app,
    "update",
    "Change a project. --cu and --suspend-timeout are the defaults of its new computes.",
    example="projects update $NEON_PROJECT_ID --name store",
)
async def update_project(
    session: CommandSession,
    project: ProjectArgument,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The new name.")
    ] = None,
    size: SizeOption = None,
    *,
    suspend_timeout: SuspendOption = None,
    history: HistoryOption = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    check_change(name=name, cu=size, suspend_timeout=suspend_timeout, history_retention=history)
    project = await project_id(session, project)
    request = session.neon.projects.update(
        project,
        name=or_unset(name),
        default_endpoint_settings=unless_empty(
            DefaultEndpointSettings(**compute_limits(size, suspend_timeout))
        ),
        history_retention_seconds=or_unset(history),
    )
    changed = await session.send(request)
    done = f"the change of project {project} was requested"
    await finish(session, changed, _CHANGED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "delete",
    "Delete a project and everything in it. `projects recover` undoes this for seven days.",
    example="projects delete $NEON_PROJECT_ID",
    asks=True,
)
async def delete_project(
    session: CommandSession,
    project: ProjectArgument,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    question = f"Delete project {project} and everything in it?"
    project = await project_id(session, project)
    await session.confirm(question)
    deleted = await session.send(session.neon.projects.delete(project))
    done = f"the deletion of project {project} was requested"
    await finish(session, deleted, _DELETED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "recover",
    "Recover a deleted project with its branches.",
    example="projects recover $NEON_DELETED_PROJECT_ID",
)
async def recover_project(
    session: CommandSession,
    project: Annotated[
        str,
        typer.Argument(
            metavar="PROJECT",
            help="The id or the name of the deleted project.",
            show_default=False,
        ),
    ],
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    project = await project_id(session, project, deleted=True)
    recovered = await session.send(session.neon.projects.recover(project))
    done = f"the recovery of project {project} was requested"
    await finish(session, recovered, _CHANGED, done=done, wait=wait, timeout=timeout)
