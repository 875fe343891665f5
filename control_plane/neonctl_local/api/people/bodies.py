"""Request bodies about users, organizations and invitations."""

from neonctl_local.api.request.bodies import Body, Email, Name, PublishedRole


class InvitationSpec(Body, frozen=True):
    """An invitation to create."""

    email: Email
    role: PublishedRole


class InvitationsCreate(Body, frozen=True):
    """Invitations to create. Either all of them are created, or none."""

    invitations: list[InvitationSpec]


class UserCreate(Body, frozen=True, forbid_unknown_fields=True):
    """A user to create."""

    name: Name
    email: Email


class InvitationAccept(Body, frozen=True, forbid_unknown_fields=True):
    """The name of the user who accepts an invitation."""

    name: Name


class OrganizationCreate(Body, frozen=True, forbid_unknown_fields=True):
    """An organization to create."""

    name: Name
