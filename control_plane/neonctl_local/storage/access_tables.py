"""The rows of the tables that give access to projects and to the services of branches.

Times are instants, as in ``tables.py``.
"""

from typing import ClassVar, Literal

from neonctl_local import ids
from neonctl_local.clock import Instant
from neonctl_local.storage.rows import Row

ProjectRole = Literal["viewer", "editor", "admin"]


class ProjectGrant(Row, frozen=True):
    """An organization member's role on one of the organization's projects."""

    table: ClassVar[str] = "project_grants"

    id: int
    project_id: str
    member_id: str
    role: ProjectRole


class Credential(Row, frozen=True):
    """A credential for the services of a branch. ``scopes`` is JSON.

    Both of its secrets, ``api_token`` and ``s3_secret_access_key``, are derived from
    ``secret_seed``.
    """

    table: ClassVar[str] = "credentials"

    id: str
    branch_id: str
    name: str | None
    scopes: str
    secret_seed: str
    created_at: Instant
    revoked_at: Instant | None = None

    @property
    def short_id(self) -> str:
        """The first 12 hexadecimal digits of the id."""
        return self.id.removeprefix(ids.CREDENTIAL_PREFIX)[:12]

    @property
    def api_token(self) -> str:
        """The bearer token of the credential."""
        return ids.credential_token(self.short_id, self.secret_seed)

    @property
    def s3_secret_access_key(self) -> str:
        """The secret key for S3 clients."""
        return ids.s3_secret_access_key(self.secret_seed)


class CustomDomain(Row, frozen=True):
    """A domain that points to a function of a branch. ``id`` is the domain, in lower case."""

    table: ClassVar[str] = "custom_domains"

    id: str
    branch_id: str
    entity_type: str
    entity_id: str
    created_at: Instant
