"""Neon Auth on a branch: users, sign-in providers, trusted domains and settings."""

from neonctl_async.models.base import Model, OpenEnum, Timestamp
from neonctl_async.models.secret import Secret


class AuthProvider(OpenEnum):
    """The service behind Neon Auth.

    ``better_auth`` is the current service. Neon has deprecated ``stack``. ``mock`` is a simulation
    for tests.
    """

    BETTER_AUTH = "better_auth"
    STACK = "stack"
    MOCK = "mock"


class AuthOwner(OpenEnum):
    """The owner of the project at the auth provider."""

    NEON = "neon"
    USER = "user"


class AuthTransferStatus(OpenEnum):
    """The progress of transferring the project at the auth provider."""

    INITIATED = "initiated"
    FINISHED = "finished"


class AuthIntegration(Model, kw_only=True):
    """Neon Auth on a branch."""

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
    """The publishable key; empty for Better Auth, which has none."""
    secret_server_key: Secret
    """The server's secret key; empty for Better Auth, which has none."""
    jwks_url: str
    """The URL of the keys that verify JSON Web Tokens."""
    schema_name: str
    """The Postgres schema that contains the tables of Neon Auth, usually ``neon_auth``."""
    table_name: str
    """The table in that schema that contains the users."""
    base_url: str | None = None
    """The base URL of the service, ``NEON_AUTH_BASE_URL`` in an application."""


class AuthTransferResponse(Model, kw_only=True):
    """The response to ``POST /projects/auth/transfer_ownership``."""

    url: Secret


class AuthUser(Model, kw_only=True):
    """A Neon Auth user. The branch's database contains the other fields."""

    id: str


class AuthTrustedDomain(Model, kw_only=True):
    """A domain to which users may be redirected after signing in."""

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


class AuthConfig(Model, kw_only=True):
    """General settings of Neon Auth."""

    name: str
    """The name of the application in emails."""


class AuthLocalhost(Model, kw_only=True):
    """A response that contains the setting for ``localhost``."""

    allow_localhost: bool


class AuthEmailVerificationMethod(OpenEnum):
    """The content of the email that verifies an address: a link or a one-time password."""

    LINK = "link"
    OTP = "otp"


class AuthEmailAndPassword(Model, kw_only=True):
    """The settings for signing in with an email address and a password."""

    enabled: bool
    email_verification_method: AuthEmailVerificationMethod
    require_email_verification: bool
    """True if users must verify their email address before they can sign in."""
    auto_sign_in_after_verification: bool
    """True if verifying an email address also signs the user in."""
    send_verification_email_on_sign_up: bool
    send_verification_email_on_sign_in: bool
    """True if signing in with an unverified address sends another email."""
    disable_sign_up: bool
    """True if new users cannot sign up."""


class AuthEmailProviderType(OpenEnum):
    """The server that sends emails: your own (``standard``) or Neon's (``shared``)."""

    STANDARD = "standard"
    SHARED = "shared"


class AuthEmailProvider(Model, kw_only=True):
    """The server that sends the emails of Neon Auth.

    For a ``standard`` provider, every field is set. For a ``shared`` provider, only
    ``sender_email`` and ``sender_name`` can be set.
    """

    type: AuthEmailProviderType
    host: str | None = None
    """The host name of the SMTP server."""
    port: int | None = None
    username: str | None = None
    password: Secret | None = None
    """The password. It is empty after an update, and for API keys that may not read it."""
    sender_email: str | None = None
    """The sender's address."""
    sender_name: str | None = None
    """The sender's name."""


class AuthTestEmail(Model, kw_only=True):
    """The result of a test email."""

    success: bool
    """True if the email server accepted the email."""
    error_message: str | None = None
    """The error of the email server."""


class AuthOrganizationRole(OpenEnum):
    """The role of the user who creates an organization.

    An ``admin`` manages members and settings. An ``owner`` can also delete the organization and
    transfer it to another owner.
    """

    OWNER = "owner"
    ADMIN = "admin"


class AuthOrganizationPlugin(Model, kw_only=True):
    """The settings of the plugin that lets users form organizations."""

    enabled: bool
    organization_limit: int
    """The maximum number of organizations that a user can belong to."""
    membership_limit: int
    """The maximum number of members of an organization."""
    creator_role: AuthOrganizationRole
    send_invitation_email: bool
    """True if people receive an email when they are invited to an organization."""


class AuthMagicLinkPlugin(Model, kw_only=True):
    """The settings of the magic-link plugin: users sign in with a link in an email."""

    enabled: bool
    expires_in: int
    """The lifetime of a link in minutes."""
    disable_sign_up: bool
    """True if new users cannot sign up with a link."""


class AuthPhoneNumberPlugin(Model, kw_only=True):
    """The settings of the phone-number plugin: users sign in with a code sent to their phone."""

    enabled: bool
    otp_expires_in: int | None = None
    """The lifetime of a code in seconds."""


class AuthPlugins(Model, kw_only=True):
    """The settings of all plugins, email servers and sign-in providers of a branch."""

    organization: AuthOrganizationPlugin | None = None
    magic_link: AuthMagicLinkPlugin | None = None
    phone_number: AuthPhoneNumberPlugin | None = None
    email_provider: AuthEmailProvider | None = None
    email_and_password: AuthEmailAndPassword | None = None
    oauth_providers: list[OAuthProvider] = []
    allow_localhost: bool | None = None
    """True if users may be redirected to ``localhost`` after signing in."""


class AuthWebhookEvent(OpenEnum):
    """An event that Neon Auth reports to a webhook."""

    USER_BEFORE_CREATE = "user.before_create"
    USER_CREATED = "user.created"
    SEND_OTP = "send.otp"
    SEND_MAGIC_LINK = "send.magic_link"
    ORGANIZATION_INVITATION_CREATED = "organization.invitation.created"
    ORGANIZATION_INVITATION_ACCEPTED = "organization.invitation.accepted"
    PHONE_NUMBER_VERIFIED = "phone_number.verified"


class AuthWebhook(Model, kw_only=True):
    """The webhook of a branch."""

    enabled: bool
    webhook_url: str | None = None
    """The URL that receives the events."""
    enabled_events: list[AuthWebhookEvent] = []
    """The events that Neon Auth sends."""
    timeout_seconds: int | None = None
    """How long the receiver may take to respond."""
