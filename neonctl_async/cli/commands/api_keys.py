"""``neonctl-async api-keys``."""

from typing import Annotated, Final

import typer

from neonctl_async.cli import completion
from neonctl_async.cli.command import command
from neonctl_async.cli.names import project_id, selected_org
from neonctl_async.cli.options import or_unset
from neonctl_async.cli.output import View
from neonctl_async.cli.session import CommandSession
from neonctl_async.cli.streams import check_stdout
from neonctl_async.errors import NeonError
from neonctl_async.models.api_keys import ApiKey, ApiKeyCreated, ApiKeyRevoked

app: Final = typer.Typer()

KeyOrgOption = Annotated[
    str | None,
    typer.Option(
        "--org",
        metavar="ORG",
        help="Manage keys of the organization with this id or name, instead of personal keys.",
    ),
]
KeyProjectOption = Annotated[
    str | None,
    typer.Option(
        "--project",
        "-p",
        metavar="PROJECT",
        autocompletion=completion.projects,
        help="Manage keys scoped to this project of an organization.",
    ),
]


def _parse_id(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise typer.BadParameter(
            f"{text!r} is not the id of a key: expected a number; `neonctl-async api-keys list` "
            "shows the ids of names"
        )
    return int(text)


_KEY: View[ApiKey] = View(
    columns={
        "ID": lambda key: str(key.id),
        "Name": lambda key: key.name,
        "Project": lambda key: key.project_id or "",
        "Created": lambda key: key.created_at,
        "Last used": lambda key: key.last_used_at,
    },
    raw=lambda key: str(key.id),
)
_CREATED: View[ApiKeyCreated] = View(
    columns={
        "ID": lambda key: str(key.id),
        "Name": lambda key: key.name or "",
        "Project": lambda key: key.project_id or "",
        "Key": lambda key: key.key.reveal(),
    },
    raw=lambda key: key.key.reveal(),
)
_REVOKED: View[ApiKeyRevoked] = View(
    columns={
        "Revoked": lambda key: str(key.id),
        "Name": lambda key: key.name,
    },
    raw=lambda key: str(key.id),
)


@command(app, "list", "List API keys, without their tokens.", example="api-keys list")
async def list_keys(
    session: CommandSession, org: KeyOrgOption = None, project: KeyProjectOption = None
) -> None:
    org_id, project = await _owner(session, org, project)
    if org_id is None:
        keys = await session.neon.api_keys.list()
    else:
        keys = await session.neon.organizations.list_api_keys(org_id)
    shown = [key for key in keys if project is None or key.project_id == project]
    session.screen.show_list(shown, _KEY)


@command(
    app,
    "create",
    "Create an API key and show its token. Neon shows a token only once.\n\n"
    "With --output raw, only the token goes to standard output. A key whose token cannot be "
    "printed is revoked.",
    example="api-keys create deploys --output raw",
)
async def create_key(
    session: CommandSession,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the key.", show_default=False)
    ],
    org: KeyOrgOption = None,
    project: KeyProjectOption = None,
) -> None:
    check_stdout()  # nobody would know the token
    org_id, project = await _owner(session, org, project)
    if org_id is None:
        request = session.neon.api_keys.create(key_name=name)
    else:
        request = session.neon.organizations.create_api_key(
            org_id, key_name=name, project_id=or_unset(project)
        )
    created = await session.send(request)
    session.screen.show_secrets = True
    try:
        session.screen.show(created, _CREATED)
    except OSError:
        await _revoke_lost(session, created.id, org_id)
        raise
    warning = f"store the token of key {created.id} now: it cannot be shown again"
    session.screen.print_message(warning, "yellow")


async def _revoke_lost(session: CommandSession, key: int, org_id: str | None) -> None:
    """Revoke a key whose token could not be printed, because nobody knows the token."""
    try:
        await _revoke(session, key, org_id)
    except NeonError as error:
        message = (
            f"the token of key {key} could not be printed, and the key could not be revoked: "
            f"{error}; to revoke it: neonctl-async api-keys revoke {key}"
        )
    else:
        message = f"key {key} was revoked, because its token could not be printed"
    session.screen.print_message(message, "bold red")


@command(
    app,
    "revoke",
    "Revoke an API key, immediately and permanently.",
    example="api-keys revoke $NEON_KEY_ID",
    asks=True,
)
async def revoke_key(
    session: CommandSession,
    key: Annotated[
        int,
        typer.Argument(metavar="KEY_ID", parser=_parse_id, help="The key.", show_default=False),
    ],
    org: KeyOrgOption = None,
    project: KeyProjectOption = None,
) -> None:
    org_id, project = await _owner(session, org, project)
    await session.confirm(f"Revoke key {key} permanently?")
    revoked = await session.send(_revoke(session, key, org_id))
    session.screen.show(revoked, _REVOKED)


async def _revoke(session: CommandSession, key: int, org_id: str | None) -> ApiKeyRevoked:
    if org_id is None:
        return await session.neon.api_keys.revoke(key)
    return await session.neon.organizations.revoke_api_key(org_id, key)


async def _owner(
    session: CommandSession, org: str | None, project: str | None
) -> tuple[str | None, str | None]:
    """Return the ids of the keys' organization and project. Both are None for personal keys."""
    org = await selected_org(session, org)
    if project is None:
        return org, None
    project = await project_id(session, project)
    if org is not None:
        return org, project
    found = await session.neon.projects.get(project)
    if found.org_id is None:
        raise ValueError(f"project {project} belongs to no organization: it has no scoped keys")
    return found.org_id, project
