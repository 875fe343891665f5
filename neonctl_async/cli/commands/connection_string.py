"""``neonctl-async connection-string``."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec
import typer

from neonctl_async.cli import completion
from neonctl_async.cli.command import command
from neonctl_async.cli.names import branch_or_default, endpoint_id, project_id
from neonctl_async.cli.options import ProjectOption
from neonctl_async.cli.output import Output, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.models.connection_uri import ConnectionUri

app: Final = typer.Typer()

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="DATABASE",
        autocompletion=completion.databases,
        help="The database; by default, the only one of the branch.",
        show_default=False,
    ),
]
RoleOption = Annotated[
    str | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        autocompletion=completion.roles,
        help="The role; by default, the owner of the database.",
        show_default=False,
    ),
]
EndpointOption = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        metavar="COMPUTE",
        autocompletion=completion.endpoints,
        help="The id or the name of the compute; by default, the read-write compute.",
        show_default=False,
    ),
]
PooledOption = Annotated[bool, typer.Option("--pooled", help="Connect through the pooler.")]


class Driver(StrEnum):
    """A driver, or a library with the driver that it uses."""

    ASYNCPG = "asyncpg"
    PSYCOPG = "psycopg"
    SQLALCHEMY_ASYNCPG = "sqlalchemy-asyncpg"
    SQLALCHEMY_PSYCOPG = "sqlalchemy-psycopg"
    SERVERLESS = "serverless"


class _ConnectionString(msgspec.Struct, frozen=True):
    connection_string: str
    host: str
    port: int
    database: str
    role: str
    pooled: bool


_VIEW: View[_ConnectionString] = View(
    columns={"Connection string": lambda shown: shown.connection_string},
    raw=lambda shown: shown.connection_string,
)


@command(
    app,
    "connection-string",
    "Print the connection URI of a branch, which includes the password.",
    example="connection-string main --pooled --driver asyncpg",
)
async def show_connection_string(
    session: CommandSession,
    branch: Annotated[
        str | None,
        typer.Argument(
            metavar="BRANCH",
            autocompletion=completion.branches,
            help="The id or the name of the branch; by default, the one in the .neon file, else "
            "the default branch.",
            show_default=False,
        ),
    ] = None,
    *,
    project: ProjectOption = None,
    database: DatabaseOption = None,
    role: RoleOption = None,
    endpoint: EndpointOption = None,
    pooled: PooledOption = False,
    driver: Annotated[
        Driver | None,
        typer.Option(
            "--driver",
            help="Print the form that this driver accepts; by default, the URI as Neon sent it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    uri = await find_uri(
        session, project, branch, database=database, role=role, endpoint=endpoint, pooled=pooled
    )
    if session.screen.output is Output.TABLE:
        session.screen.output = Output.RAW  # one line, also for $(…)
    session.screen.show(
        _ConnectionString(
            connection_string=_form(uri, driver),
            host=uri.host,
            port=uri.port,
            database=uri.database,
            role=uri.role,
            pooled=uri.pooled,
        ),
        _VIEW,
    )


async def find_uri(
    session: CommandSession,
    project: str | None,
    branch: str | None,
    *,
    database: str | None,
    role: str | None,
    endpoint: str | None,
    pooled: bool,
) -> ConnectionUri:
    """Return the connection URI that the options of a command select."""
    project = await project_id(session, project)
    return await session.neon.branches.connection_uri(
        project,
        await branch_or_default(session, project, branch),
        database_name=database,
        role_name=role,
        endpoint_id=None if endpoint is None else await endpoint_id(session, project, endpoint),
        pooled=pooled,
    )


def _form(uri: ConnectionUri, driver: Driver | None) -> str:
    match driver:
        case Driver.ASYNCPG:
            return uri.asyncpg
        case Driver.SQLALCHEMY_ASYNCPG:
            return uri.sqlalchemy("asyncpg")
        case Driver.SQLALCHEMY_PSYCOPG:
            return uri.sqlalchemy("psycopg")
        case Driver.SERVERLESS:
            return uri.serverless
        case Driver.PSYCOPG | None:
            return uri.psycopg
