"""``neonctl-async branches schema-diff``."""

from typing import Annotated, Final

import typer

from neonctl_async.cli import completion
from neonctl_async.cli.command import command
from neonctl_async.cli.commands.branch_changes import PARENT, SELF, source_id
from neonctl_async.cli.commands.connection_string import DatabaseOption
from neonctl_async.cli.labels import printable
from neonctl_async.cli.names import project_and_branch
from neonctl_async.cli.options import BranchArgument, Point, ProjectOption, at_option
from neonctl_async.cli.output import Output, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.cli.styles import Text
from neonctl_async.models.branches import BranchSchemaComparison

app: Final = typer.Typer()

_DIFF: View[BranchSchemaComparison] = View(columns={}, raw=lambda compared: compared.diff or "")
_STYLES: Final = {"+": "green", "-": "red", "@": "dim"}


@command(
    app,
    "schema-diff",
    "Show the changes from the schema of another branch to that of a branch.",
    example="branches schema-diff $NEON_BRANCH_ID",
)
async def compare_schemas(
    session: CommandSession,
    branch: BranchArgument,
    project: ProjectOption = None,
    *,
    base: Annotated[
        str,
        typer.Option(
            "--base",
            metavar="BRANCH",
            autocompletion=completion.branches,
            help=f"The id or the name of the other branch; {PARENT} is the parent, {SELF} the "
            "branch.",
        ),
    ] = PARENT,
    at: Annotated[Point | None, at_option("the other branch")] = None,
    database: DatabaseOption = None,
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    base = await source_id(session, project, branch, base, option="--base")
    if base == branch and at is None:
        raise ValueError("to compare a branch with its own earlier state, set --at")
    if database is None:
        from neonctl_async.resources.databases import choose_database  # imports the HTTP client

        databases = await session.neon.databases.list(project, branch)
        database = choose_database(branch, databases, None).name
    point = at or Point()
    compared = await session.neon.branches.compare_schema(
        project,
        branch,
        db_name=database,
        base_branch_id=base,
        base_lsn=point.lsn,
        base_timestamp=point.time,
    )
    session.screen.show_text(compared, _DIFF, coloured(compared.diff or ""))
    if session.screen.output is Output.TABLE and not compared.diff:
        session.screen.print_message(f"the schemas of database {database} are equal")


def coloured(diff: str) -> Text:
    """Return a unified diff with a style for each line."""
    return Text("\n").join(
        Text(printable(line), _STYLES.get(line[:1], "")) for line in diff.splitlines()
    )
