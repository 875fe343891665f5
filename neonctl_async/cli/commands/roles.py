"""``neonctl-async roles``."""

from typing import Annotated, Final

import typer
from msgspec import UNSET
from msgspec.structs import replace

from neonctl_async.cli import completion
from neonctl_async.cli.command import command
from neonctl_async.cli.finishing import finish, outcomes, outcomes_view
from neonctl_async.cli.names import branch_names, found, project_and_branch
from neonctl_async.cli.options import (
    WAIT_SECONDS,
    BranchOption,
    ProjectOption,
    SecretsOption,
    TimeoutOption,
    WaitOption,
)
from neonctl_async.cli.output import Screen, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.models.roles import Role, RoleUpdated

app: Final = typer.Typer()

RoleArgument = Annotated[
    str,
    typer.Argument(
        metavar="ROLE",
        autocompletion=completion.roles,
        help="The name of the role.",
        show_default=False,
    ),
]

_LISTED: View[Role] = View(
    columns={
        "Name": lambda role: role.name,
        "Protected": lambda role: "yes" if role.protected else "",
        "Branch": lambda role: role.branch_id,
        "Created": lambda role: role.created_at,
    },
    raw=lambda role: role.name,
    whole=("Name", "Branch"),
)


def _password(screen: Screen, role: Role) -> str:
    return "" if role.password is None else screen.secret_with_hint(role.password)


def _raw(screen: Screen, role: Role) -> str:
    return screen.secret(role.password) if screen.show_secrets and role.password else role.name


def _role(screen: Screen) -> View[Role]:
    return View(
        columns={**_LISTED.columns, "Password": lambda role: _password(screen, role)},
        raw=lambda role: _raw(screen, role),
    )


def _changed(screen: Screen) -> View[RoleUpdated]:
    return View(
        columns={
            "Name": lambda changed: changed.role.name,
            "Branch": lambda changed: changed.role.branch_id,
            "Password": lambda changed: _password(screen, changed.role),
            "Operations": lambda changed: outcomes(changed.operations),
        },
        raw=lambda changed: _raw(screen, changed.role),
    )


@command(app, "list", "List the roles of a branch.", example="roles list --branch main")
async def list_roles(
    session: CommandSession, project: ProjectOption = None, branch: BranchOption = None
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    listed = await session.neon.roles.list(project, branch)
    names = await branch_names(session, project)
    view = _LISTED.with_column("Branch", lambda one: names.get(one.branch_id, one.branch_id))
    session.screen.show_list(listed, view)


@command(
    app,
    "get",
    "Show a role. With --show-secrets, also show its password.",
    example="roles get neondb_owner",
)
async def get_role(
    session: CommandSession,
    role: RoleArgument,
    project: ProjectOption = None,
    branch: BranchOption = None,
    *,
    show_secrets: SecretsOption = False,
) -> None:
    session.screen.show_secrets = show_secrets
    project, branch = await project_and_branch(session, project, branch)
    call = session.neon.roles.get(project, branch, role)
    shown = await found(session, call, "role", project, branch, role)
    if show_secrets:
        password = await session.neon.roles.reveal_password(project, branch, role)
        shown = replace(shown, password=password)
    session.screen.show(shown, _role(session.screen))


@command(
    app,
    "create",
    "Create a role with a password. This closes the connections of running computes.",
    example="roles create --name app",
)
async def create_role(
    session: CommandSession,
    name: Annotated[
        str,
        typer.Option("--name", metavar="NAME", help="The name of the role.", show_default=False),
    ],
    project: ProjectOption = None,
    branch: BranchOption = None,
    *,
    no_login: Annotated[
        bool, typer.Option("--no-login", help="Create a role that cannot connect.")
    ] = False,
    show_secrets: SecretsOption = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    session.screen.show_secrets = show_secrets
    project, branch = await project_and_branch(session, project, branch)
    request = session.neon.roles.create(project, branch, name=name, no_login=no_login or UNSET)
    created = await session.send(request)
    done = f"role {name} was created on branch {branch}"
    view = _changed(session.screen)
    await finish(session, created, view, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "reset-password",
    "Give a role a new password. This closes its connections.",
    example="roles reset-password neondb_owner --show-secrets",
    asks=True,
)
async def reset_password(
    session: CommandSession,
    role: RoleArgument,
    project: ProjectOption = None,
    branch: BranchOption = None,
    *,
    show_secrets: SecretsOption = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    session.screen.show_secrets = show_secrets
    question = f"Reset the password of role {role} of project {project}?"
    project, branch = await project_and_branch(session, project, branch)
    await session.confirm(question)
    call = session.send(session.neon.roles.reset_password(project, branch, role))
    changed = await found(session, call, "role", project, branch, role)
    done = f"a new password of role {role} on branch {branch} was requested"
    view = _changed(session.screen)
    await finish(session, changed, view, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "delete",
    "Delete a role.",
    example="roles delete $NEON_ROLE",
    asks=True,
)
async def delete_role(
    session: CommandSession,
    role: RoleArgument,
    project: ProjectOption = None,
    branch: BranchOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    question = f"Delete role {role} of project {project}?"
    project, branch = await project_and_branch(session, project, branch)
    await session.confirm(question)
    call = session.send(session.neon.roles.delete(project, branch, role))
    deleted = await found(session, call, "role", project, branch, role)
    done = f"the deletion of role {role} from branch {branch} was requested"
    await finish(
        session, deleted, outcomes_view("Deleted", role), done=done, wait=wait, timeout=timeout
    )
