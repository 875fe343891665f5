"""``neonctl-async me`` and ``set-context``: the account and the project of a shell."""

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
        chosen = Context(
            project_id=_project_id(screen, api_host, project),
            org_id=org,
            branch=None if names.is_branch_id(branch) else branch,
            branch_id=branch if names.is_branch_id(branch) else None,
        )
        _write(screen, path, context.merge(keys, chosen))
    except ValueError as error:
        screen.print_message(f"error: {error}", "bold red")
        raise typer.Exit(ExitCode.USAGE) from None
    screen.show(chosen, _CONTEXT)


def _project_id(screen: Screen, api_host: str | None, project: str | None) -> str | None:
    """Return the id of a project. Ask Neon only if the text is not an id."""
    if project is None or names.is_project_id(project):
        return project
    found = ""

    async def search(session: CommandSession) -> None:
        nonlocal found
        found = await names.project_id(session, project)

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
