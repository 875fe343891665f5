"""``neonctl-async orgs``."""

from typing import Annotated, Final

import typer

from neonctl_async.cli.command import command
from neonctl_async.cli.labels import moment_label
from neonctl_async.cli.output import View
from neonctl_async.cli.session import CommandSession
from neonctl_async.models.organizations import Organization

app: Final = typer.Typer()

_ORG: View[Organization] = View(
    columns={
        "ID": lambda org: org.id,
        "Name": lambda org: org.name,
        "Plan": lambda org: org.plan or "",
        "Created": lambda org: moment_label(org.created_at),
    },
    raw=lambda org: org.id,
)


@command(
    app,
    "list",
    "List the organizations of the account, or the one that owns the key.",
    example="orgs list",
)
async def list_orgs(session: CommandSession) -> None:
    session.screen.show_list(await session.neon.users.organizations(), _ORG)


@command(app, "get", "Show an organization.", example="orgs get $NEON_ORG_ID")
async def get_org(
    session: CommandSession,
    org: Annotated[
        str, typer.Argument(metavar="ORG_ID", help="The organization.", show_default=False)
    ],
) -> None:
    session.screen.show(await session.neon.organizations.get(org), _ORG)
