"""Settings of Neon Auth: emails, passwords, plugins and the webhook."""

from neonctl_async.models.base import Model, OpenEnum
from neonctl_async.models.secret import Secret
from neonctl_async.models.services.auth import OAuthProvider


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
    """The settings of the sign-in with email address and password."""

    enabled: bool
    email_verification_method: AuthEmailVerificationMethod
    require_email_verification: bool
    """True if users can sign in only after they have verified their email address."""
    auto_sign_in_after_verification: bool
    """True if the verification of an email address also signs the user in."""
    send_verification_email_on_sign_up: bool
    send_verification_email_on_sign_in: bool
    """True if a sign-in with an address that is not verified sends another email."""
    disable_sign_up: bool
    """True if new users cannot sign up."""


class AuthEmailProviderType(OpenEnum):
    """The server that sends emails: your own (``standard``) or Neon's (``shared``)."""

    STANDARD = "standard"
    SHARED = "shared"


class AuthEmailProvider(Model, kw_only=True):
    """The server that sends the emails of Neon Auth.

    A ``standard`` provider has every field. A ``shared`` one has only ``sender_email`` and
    ``sender_name``, and may lack these too.
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
    """The settings of the plugin for organizations of users."""

    enabled: bool
    organization_limit: int
    """The largest number of organizations that a user can belong to."""
    membership_limit: int
    """The largest number of members of an organization."""
    creator_role: AuthOrganizationRole
    send_invitation_email: bool
    """True if people receive an email when they are invited to an organization."""


class AuthMagicLinkPlugin(Model, kw_only=True):
    """The settings of the plugin for the sign-in with a link in an email."""

    enabled: bool
    expires_in: int
    """The lifetime of a link in minutes."""
    disable_sign_up: bool
    """True if new users cannot sign up with a link."""


class AuthPhoneNumberPlugin(Model, kw_only=True):
    """The settings of the plugin for the sign-in with a code that is sent to a phone."""

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
    """True if a page on ``localhost`` may be the target of a redirect after the sign-in."""


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
    """The time that the receiver has for its response."""
