"""``user``, ``org`` and ``member``: people and organizations of a running local control plane."""

import argparse
import getpass
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import msgspec

from neonctl_local.arguments import Parser
from neonctl_local.commands.console import CONSOLE, CommandError, Console, segment
from neonctl_local.commands.records import (
    Invitation,
    Invitations,
    InvitationSecret,
    ListedMember,
    Members,
    OrganizationCreated,
    Organizations,
    UserCreated,
    Users,
)

Command = Callable[[Console, argparse.Namespace], None]

PAGE: Final = 500
"""The number of members that one request reads."""

_DESCRIPTION: Final = (
    "Commands for people and organizations of a running local control plane, which the "
    "environment variables NEON_API_HOST and NEON_API_KEY name. They do what people do in Neon's "
    "console. NEON_API_KEY must be a personal key: it belongs to the person who acts."
)


class Subparsers(Protocol):
    """The subparsers of a parser. argparse has no public name for their class."""

    def add_parser(self, name: str, *, help: str, description: str) -> Parser:  # noqa: A002 - the name of argparse
        """Add the parser of a command."""
        ...


def main(arguments: Sequence[str], *, prog: str) -> int:
    """Run a command and return its exit status."""
    parser = _new_parser(prog)
    options = parser.parse_args(arguments)
    try:
        _check_is_text(arguments)
        options.run(Console.from_environment(os.environ), options)
    except CommandError as error:
        sys.stderr.write(f"{prog}: {error}\n")
        return 1
    return 0


def _check_is_text(arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:  # Python decodes other bytes to surrogates
            raise CommandError(f"{argument!r} is not text in the encoding of the system") from None


def _new_parser(prog: str) -> Parser:
    parser = Parser(prog=prog, description=_DESCRIPTION)
    groups = parser.add_subparsers(required=True, metavar="user|org|member")
    users = _group(groups, "user", "create and list users")
    _add(users, "create", "create a user and print a key", create_user, "name", "email")
    _add(users, "list", "list all users", list_users)
    organizations = _group(groups, "org", "create and list organizations")
    _add(organizations, "create", "create an organization", create_organization, "name")
    _add(organizations, "list", "list your organizations", list_organizations)
    members = _group(groups, "member", "invite, list, change and remove members")
    _add(members, "list", "list members", list_members, "org")
    invite = _add(
        members, "invite", "invite a person, or add a user", invite_member, "org", "email"
    )
    invite.add_argument("--role", choices=("admin", "member"), default="member")
    _add(members, "invitations", "list invitations with their status", list_invitations, "org")
    _add(
        members,
        "accept",
        "sign up as the recipient of an invitation, and print a key. "
        "The secret of the invitation is read from standard input",
        accept_invitation,
        *("invitation", "name"),
    )
    _add(
        members,
        "secret",
        "print a new secret of a pending invitation, which replaces the previous one",
        create_secret,
        "invitation",
    )
    _add(members, "revoke", "revoke a pending invitation", revoke_invitation, "invitation")
    role = _add(members, "role", "change the role of a member", change_role, "org", "member")
    role.add_argument("role", choices=("admin", "member"))
    _add(members, "remove", "remove a member", remove_member, "org", "member")
    _add(members, "leave", "leave an organization", leave, "org")
    return parser


_HELP: Final = {
    "name": "the name to show",
    "email": "the email address",
    "org": "the id of the organization",
    "invitation": "the id of the invitation",
    "member": "the email address or the id of the member",
}


def _group(groups: Subparsers, name: str, text: str) -> Subparsers:
    group = groups.add_parser(name, help=text, description=f"{text.capitalize()}.")
    return group.add_subparsers(required=True, metavar="command")


def _add(group: Subparsers, name: str, text: str, run: Command, *positionals: str) -> Parser:
    parser = group.add_parser(name, help=text, description=f"{text.capitalize()}.")
    parser.set_defaults(run=run)
    for positional in positionals:
        parser.add_argument(positional, metavar=positional.upper(), help=_HELP[positional])
    return parser


def create_user(console: Console, options: argparse.Namespace) -> None:
    """Create a user, and print a key (``user create``)."""
    body = {"name": options.name, "email": options.email}
    _print_created(console.request("POST", "/users", UserCreated, body, base=CONSOLE))


def list_users(console: Console, options: argparse.Namespace) -> None:
    """Print all users (``user list``)."""
    del options  # All commands have the same parameters.
    users = console.request("GET", "/users", Users, base=CONSOLE).users
    _print_rows((user.id, user.email, user.name) for user in users)


def create_organization(console: Console, options: argparse.Namespace) -> None:
    """Create an organization, and print its id (``org create``)."""
    body = {"name": options.name}
    created = console.request("POST", "/organizations", OrganizationCreated, body, base=CONSOLE)
    _print_rows([(created.organization.id,)])


def list_organizations(console: Console, options: argparse.Namespace) -> None:
    """Print the organizations of the key's owner (``org list``)."""
    del options  # All commands have the same parameters.
    found = console.request("GET", "/users/me/organizations", Organizations).organizations
    _print_rows((organization.id, organization.name) for organization in found)


def list_members(console: Console, options: argparse.Namespace) -> None:
    """Print the members of an organization (``member list``)."""
    _print_rows(
        (listed.member.user_id, listed.member.role, listed.user.email)
        for listed in _members(console, options.org)
    )


def invite_member(console: Console, options: argparse.Namespace) -> None:
    """Invite a person, and print the id of the invitation (``member invite``)."""
    body = {"invitations": [{"email": options.email, "role": options.role}]}
    path = f"/organizations/{segment(options.org)}/invitations"
    created = console.request("POST", path, Invitations, body).invitations[0]
    _print_rows([(created.id,)])
    statuses = {invitation.id: invitation.status for invitation in _invitations(console, options)}
    if statuses.get(created.id) == "accepted":
        sys.stderr.write(f"{_shown(created.email)} has an account and is a member now\n")


def list_invitations(console: Console, options: argparse.Namespace) -> None:
    """Print the invitations to an organization (``member invitations``)."""
    _print_rows(
        (invitation.id, invitation.status, invitation.role, invitation.email)
        for invitation in _invitations(console, options)
    )


def create_secret(console: Console, options: argparse.Namespace) -> None:
    """Create a new secret for an invitation, and print it (``member secret``)."""
    path = f"/invitations/{segment(options.invitation)}/secret"
    _print_rows([(console.request("POST", path, InvitationSecret, base=CONSOLE).secret,)])


def accept_invitation(console: Console, options: argparse.Namespace) -> None:
    """Sign up as the recipient of an invitation, and print a key (``member accept``)."""
    path = f"/invitations/{segment(options.invitation)}/accept"
    body = {"name": options.name, "secret": _read_secret()}
    _print_created(console.request("POST", path, UserCreated, body, base=CONSOLE))


def revoke_invitation(console: Console, options: argparse.Namespace) -> None:
    """Revoke a pending invitation (``member revoke``)."""
    path = f"/invitations/{segment(options.invitation)}"
    console.request("DELETE", path, msgspec.Raw, base=CONSOLE)


def change_role(console: Console, options: argparse.Namespace) -> None:
    """Change the role of a member (``member role``)."""
    path = _member_path(console, options)
    console.request("PATCH", path, msgspec.Raw, {"role": options.role})


def remove_member(console: Console, options: argparse.Namespace) -> None:
    """Remove a member from an organization (``member remove``)."""
    console.request("DELETE", _member_path(console, options), msgspec.Raw)


def leave(console: Console, options: argparse.Namespace) -> None:
    """Leave an organization (``member leave``)."""
    path = f"/organizations/{segment(options.org)}/leave"
    console.request("POST", path, msgspec.Raw, base=CONSOLE)


def _members(console: Console, org_id: str) -> list[ListedMember]:
    path = f"/organizations/{segment(org_id)}/members?limit={PAGE}"
    first = f"{path}&sort_by=joined_at&sort_order=asc"
    page = console.request("GET", first, Members)
    found = page.members
    while page.pagination.next:
        page = console.request("GET", f"{path}&cursor={segment(page.pagination.next)}", Members)
        found += page.members
    return found


def _member_path(console: Console, options: argparse.Namespace) -> str:
    for listed in _members(console, options.org):
        names = (listed.member.id, listed.member.user_id, listed.user.email.lower())
        if options.member in names or options.member.lower() in names:
            return f"/organizations/{segment(options.org)}/members/{segment(listed.member.id)}"
    raise CommandError(f"{options.member!r} is not a member of {options.org}: see member list")


def _invitations(console: Console, options: argparse.Namespace) -> list[Invitation]:
    path = f"/organizations/{segment(options.org)}/invitations"
    return console.request("GET", path, Invitations, base=CONSOLE).invitations


def _read_secret() -> str:
    """Return the secret from standard input, because other users can see arguments."""
    if sys.stdin.isatty():
        return getpass.getpass("Secret of the invitation: ")
    return sys.stdin.readline().strip()


def _print_created(created: UserCreated) -> None:
    """Print the key to standard output, as a line for a shell, and the ids to standard error."""
    sys.stderr.write(f"created user {created.user.id} ({_shown(created.user.email)})\n")
    for organization in created.organizations:
        sys.stderr.write(f"joined {organization.id} ({_shown(organization.name)})\n")
    sys.stdout.write(f"export NEON_API_KEY={created.api_key.key}\n")


def _print_rows(rows: Iterable[Sequence[str]]) -> None:
    for row in rows:
        sys.stdout.write("\t".join(_shown(cell) for cell in row) + "\n")


def _shown(text: str) -> str:
    """Replace the characters of a string that could control a terminal or split a line."""
    return "".join(character if character.isprintable() else "�" for character in text)
