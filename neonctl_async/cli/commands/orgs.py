"""``neonctl-async orgs``."""

from typing import Annotated, Final

import typer

from neonctl_async.cli.command import command
from neonctl_async.cli.names import org_id
from neonctl_async.cli.output import View
from neonctl_async.cli.session import CommandSession
from neonctl_async.models.organizations import MemberWithUser, Organization

app: Final = typer.Typer()

OrgArgument = Annotated[
    str,
    typer.Argument(
        metavar="ORG", help="The id or the name of the organization.", show_default=False
    ),
]

_PAGE = 500

_ORG: View[Organization] = View(
    columns={
        "ID": lambda org: org.id,
        "Name": lambda org: org.name,
        "Plan": lambda org: org.plan or "",
        "Created": lambda org: org.created_at,
    },
    raw=lambda org: org.id,
)

_MEMBER: View[MemberWithUser] = View(
    columns={
        "ID": lambda one: one.member.id,
        "Email": lambda one: one.user.email,
        "Role": lambda one: one.member.role,
        "Joined": lambda one: one.member.joined_at,
    },
    raw=lambda one: one.member.id,
    first=("Email", "Role"),
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
async def get_org(session: CommandSession, org: OrgArgument) -> None:
    org = await org_id(session, org)
    session.screen.show(await session.neon.organizations.get(org), _ORG)


@command(
    app,
    "members",
    "List the members of an organization, newest first.",
    example="orgs members $NEON_ORG_ID",
    is_list=True,
)
async def list_members(session: CommandSession, org: OrgArgument) -> None:
    org = await org_id(session, org)
    members = session.neon.organizations.list_members(org, limit=_PAGE)
    session.screen.show_list(await members.collect(), _MEMBER)
