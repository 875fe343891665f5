"""The API's records of people, organizations and keys, with the fields that pages show."""

import msgspec


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """The response to the creation of a key. ``key`` is the token."""

    id: int
    name: str
    key: str

    def __repr__(self) -> str:
        """Return a string without the token."""
        return f"<NewKey {self.id}>"


class Organization(msgspec.Struct, frozen=True):
    """An organization."""

    id: str
    name: str
    created_at: str


class OrganizationCreated(msgspec.Struct, frozen=True):
    """The response to the creation of an organization."""

    organization: Organization


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A membership."""

    id: str
    user_id: str
    role: str
    joined_at: str


class Account(msgspec.Struct, frozen=True):
    """The account of a member."""

    email: str


class ListedMember(msgspec.Struct, frozen=True):
    """A member in a list."""

    member: Member
    user: Account


class Next(msgspec.Struct, frozen=True):
    """The position of the next page of members."""

    next: str = ""


class Members(msgspec.Struct, frozen=True):
    """A page of members."""

    members: list[ListedMember]
    pagination: Next = Next()


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """An invitation. Only lists contain its status and the time when it expires."""

    id: str
    email: str
    role: str
    invited_at: str
    status: str = ""
    expires_at: str = ""


class InvitationSecret(msgspec.Struct, frozen=True):
    """The response to the creation of an invitation secret."""

    secret: str

    def __repr__(self) -> str:
        """Return a string without the secret."""
        return "<InvitationSecret>"


class Invitations(msgspec.Struct, frozen=True):
    """A list of invitations."""

    invitations: list[Invitation]


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user."""

    id: str
    name: str
    email: str
    created_at: str


class Users(msgspec.Struct, frozen=True):
    """A list of users."""

    users: list[User]


class UserCreated(msgspec.Struct, frozen=True):
    """The response to the creation of a user, who joins the organizations that sent invitations."""

    user: User
    organizations: list[Organization]
    api_key: NewKey
