"""``neonctl-async me`` and ``set-context``: the account and the project of a shell."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from neonctl_async.cli import completion, context, names
from neonctl_async.cli.app import PROGRAM
from neonctl_async.cli.command import (
    CheckedCommand,
    ContextFileOption,
    HostOption,
    NoColorOption,
    OutputOption,
    command,
)
from neonctl_async.cli.context import Context
from neonctl_async.cli.exits import ExitCode
from neonctl_async.cli.output import Output, Screen, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.config import API_KEY_VARIABLE
from neonctl_async.models.users import CurrentUser

app: Final = typer.Typer()

_CONTEXT: View[Context] = View(
    columns={
        "Project": lambda shown: shown.project_id or "",
        "Organization": lambda shown: shown.org_id or "",
        "Branch": lambda shown: shown.branch or shown.branch_id or "",
    },
    raw=lambda shown: shown.project_id or "",
)
_USER: View[CurrentUser] = View(
    columns={
        "ID": lambda user: user.id,
        "Email": lambda user: user.email,
        "Name": lambda user: " ".join(filter(None, (user.name, user.last_name))),
        "Plan": lambda user: user.plan or "",
        "Projects": lambda user: f"at most {user.projects_limit}" if user.projects_limit else "",
    },
    raw=lambda user: user.id,
)


@command(app, "me", "Show the account of a personal API key.", example="me")
async def show_account(session: CommandSession) -> None:
    session.screen.show(await session.neon.users.me(), _USER)


@app.command(
    "set-context",
    cls=CheckedCommand,
    help="Select the project of this directory, in a .neon file.\n\n"
    "Neon's own command line uses the same file. "
    "In this directory and below it, the file sets the defaults of --project, --org and "
    "--branch. If you leave out an option, its value is removed from the file.",
    epilog=f"\b\nExample: {PROGRAM} set-context --project-id $NEON_PROJECT_ID --branch main",
)
def set_context(
    project: Annotated[
        str | None,
        typer.Option(
            "--project-id",
            metavar="PROJECT",
            autocompletion=completion.projects,
            help="The id or the name of the project.",
        ),
    ] = None,
    org: Annotated[
        str | None, typer.Option("--org-id", metavar="ORG_ID", help="The organization.")
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch",
            metavar="BRANCH",
            autocompletion=completion.branches,
            help="The id or the name of a branch.",
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
    api_host: HostOption = None,
    *,
    no_color: NoColorOption = False,
    context_file: ContextFileOption = None,
) -> None:
    if branch is not None and project is None:
        raise typer.BadParameter("also set --project-id, its project", param_hint="--branch")
    screen = Screen(output, no_color=no_color)
    try:
        path = context.path_to_write(context_file)
        keys = context.read(path) if path.exists() else {}
        project_id = _project_id(screen, api_host, project)
        branch_id = _branch_id(screen, api_host, project_id, branch)
        chosen = Context(
            project_id=project_id,
            org_id=org,
            branch=None if branch_id else branch,
            branch_id=branch_id,
        )
        _write(screen, path, context.merge(keys, chosen))
    except ValueError as error:
        screen.print_message(f"error: {error}", "bold red")
        raise typer.Exit(ExitCode.USAGE) from None
    screen.show(chosen, _CONTEXT)


def _project_id(screen: Screen, api_host: str | None, project: str | None) -> str | None:
    """Return the id of a project. Look it up only if ``project`` does not look like an id."""
    if project is None or names.is_project_id(project):
        return project
    return _found(screen, api_host, lambda session: names.project_id(session, project))


def _branch_id(
    screen: Screen, api_host: str | None, project_id: str | None, branch: str | None
) -> str | None:
    """Return the id of a branch if ``branch`` looks like an id, or None for a name.

    With an API key, look up whether ``branch`` is a name that looks like an id, because other tools
    would take it for an id.
    """
    if project_id is None or branch is None or not names.is_branch_id(branch):
        return None
    if not os.environ.get(API_KEY_VARIABLE):
        return branch
    return _found(
        screen, api_host, lambda session: names.listed_branch_id(session, project_id, branch)
    )


def _found(
    screen: Screen, api_host: str | None, find: Callable[[CommandSession], Awaitable[str]]
) -> str:
    """Return the result of a search. If it fails, exit with its exit code."""
    found = ""

    async def search(session: CommandSession) -> None:
        nonlocal found
        found = await find(session)

    from neonctl_async.cli.running import run  # imports the HTTP client

    if code := run(screen, api_host, search):
        raise typer.Exit(code)
    return found


def _write(screen: Screen, path: Path, keys: dict[str, object]) -> None:
    is_new = not path.exists()
    try:
        context.write(path, keys)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}") from None
    screen.print_message(f"wrote {path}")
    if is_new and not context.is_ignored(path):
        screen.print_message(f"add {path.name} to .gitignore: others may use another project")
