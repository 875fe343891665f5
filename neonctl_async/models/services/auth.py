"""Neon Auth of a branch: users, sign-in providers and trusted domains."""

from neonctl_async.models.base import Model, OpenEnum, Timestamp
from neonctl_async.models.secret import Secret


class AuthProvider(OpenEnum):
    """The service behind Neon Auth.

    ``better_auth`` is the current one. Neon has deprecated ``stack``. ``mock`` is a simulation for
    tests.
    """

    BETTER_AUTH = "better_auth"
    STACK = "stack"
    MOCK = "mock"


class AuthOwner(OpenEnum):
    """The owner of the project at the auth provider."""

    NEON = "neon"
    USER = "user"


class AuthTransferStatus(OpenEnum):
    """The progress of a transfer of the project at the auth provider."""

    INITIATED = "initiated"
    FINISHED = "finished"


class AuthIntegration(Model, kw_only=True):
    """Neon Auth of a branch."""

    auth_provider: AuthProvider
    auth_provider_project_id: str
    """The id of the project at the auth provider."""
    branch_id: str
    db_name: str
    """The database that contains the users."""
    created_at: Timestamp
    owned_by: AuthOwner
    transfer_status: AuthTransferStatus | None = None
    """None unless a transfer was started."""
    jwks_url: str
    """The URL of the keys that verify JSON Web Tokens."""
    base_url: str | None = None
    """The base URL of the service, ``NEON_AUTH_BASE_URL`` in an application."""
    name: str | None = None
    """The name of the application in emails, by default the name of the project."""


class AuthKeys(Model, kw_only=True):
    """The addresses and keys that connect an application to Neon Auth."""

    auth_provider: AuthProvider
    auth_provider_project_id: str
    """The id of the project at the auth provider."""
    pub_client_key: str
    """The publishable key. Better Auth has none, and the text is empty."""
    secret_server_key: Secret
    """The secret key of the server. Better Auth has none, and the secret is empty."""
    jwks_url: str
    """The URL of the keys that verify JSON Web Tokens."""
    schema_name: str
    """The Postgres schema that contains the tables of Neon Auth, usually ``neon_auth``."""
    table_name: str
    """The table of the users in this schema."""
    base_url: str | None = None
    """The base URL of the service, ``NEON_AUTH_BASE_URL`` in an application."""


class AuthTransferResponse(Model, kw_only=True):
    """The response of ``POST /projects/auth/transfer_ownership``."""

    url: Secret


class AuthUser(Model, kw_only=True):
    """A user of Neon Auth. The database of the branch contains the other fields."""

    id: str


class AuthTrustedDomain(Model, kw_only=True):
    """A domain that may be the target of a redirect after the sign-in."""

    domain: str
    auth_provider: AuthProvider


class AuthTrustedDomainsResponse(Model, kw_only=True):
    """A response that lists the trusted domains of a branch."""

    domains: list[AuthTrustedDomain]


class OAuthProviderId(OpenEnum):
    """An OAuth provider."""

    GOOGLE = "google"
    GITHUB = "github"
    MICROSOFT = "microsoft"
    VERCEL = "vercel"


class OAuthProviderType(OpenEnum):
    """The OAuth application that users sign in with: your own (``standard``) or Neon's."""

    STANDARD = "standard"
    SHARED = "shared"


class OAuthProvider(Model, kw_only=True):
    """An OAuth provider that users of a branch can sign in with."""

    id: OAuthProviderId
    type: OAuthProviderType
    client_id: str | None = None
    """The id of the OAuth application at the provider."""
    client_secret: Secret | None = None
    """The secret of the OAuth application."""


class OAuthProvidersResponse(Model, kw_only=True):
    """A response that lists the OAuth providers of a branch."""

    providers: list[OAuthProvider]
