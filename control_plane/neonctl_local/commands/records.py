"""The parts of responses that the commands print."""

import msgspec


class User(msgspec.Struct):
    """A user."""

    id: str
    name: str
    email: str


class Users(msgspec.Struct):
    """The response that lists users."""

    users: list[User]


class Organization(msgspec.Struct):
    """An organization."""

    id: str
    name: str


class Organizations(msgspec.Struct):
    """The response that lists the organizations of a user."""

    organizations: list[Organization]


class OrganizationCreated(msgspec.Struct):
    """The response that contains a new organization."""

    organization: Organization


class Link(msgspec.Struct):
    """The response that contains a link to the console."""

    path: str


class Planned(msgspec.Struct):
    """A planned fault of requests, or a planned failure of operations, with its settings."""

    id: str
    fired: int
    plan: msgspec.Raw


class AllPlanned(msgspec.Struct):
    """The response that lists the planned faults and failures."""

    planned: list[Planned]


class Key(msgspec.Struct):
    """The token of a new key."""

    key: str


class UserCreated(msgspec.Struct):
    """The response that contains a new user, a key, and the organizations that the user joined."""

    user: User
    organizations: list[Organization]
    api_key: Key


class Member(msgspec.Struct):
    """The membership of a user."""

    id: str
    user_id: str
    role: str


class MemberUser(msgspec.Struct):
    """The account of a member."""

    email: str


class ListedMember(msgspec.Struct):
    """A membership and the account of the member."""

    member: Member
    user: MemberUser


class Pagination(msgspec.Struct):
    """The position of the next page."""

    next: str = ""


class Members(msgspec.Struct):
    """A page of members."""

    members: list[ListedMember]
    pagination: Pagination


class Invitation(msgspec.Struct):
    """An invitation. Its ``status`` is empty in the response that creates it."""

    id: str
    email: str
    role: str
    status: str = ""


class InvitationSecret(msgspec.Struct):
    """The response that contains the secret of an invitation."""

    secret: str


class Invitations(msgspec.Struct):
    """The response that lists invitations."""

    invitations: list[Invitation]
