"""Requests that manage the settings of Neon Auth, which are stored but have no effect here.

Each setting is a record of :class:`AuthSettings`, and has the same two requests.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from neonctl_local.api.request.bodies import Body
from neonctl_local.api.request.calls import Call, Json, Response, json_text, raw_json, respond
from neonctl_local.api.request.decoding import decode
from neonctl_local.api.services import auth
from neonctl_local.storage.service_tables import AuthIntegration
from neonctl_local.storage.transactions import Transaction

SettingHandler = Callable[[Transaction, Call], Response]


class EmailAndPassword(Body, frozen=True):
    """The settings for signing in with an email address and a password."""

    enabled: bool = True
    email_verification_method: str = "otp"
    require_email_verification: bool = False
    auto_sign_in_after_verification: bool = True
    send_verification_email_on_sign_up: bool = False
    send_verification_email_on_sign_in: bool = False
    disable_sign_up: bool = False


class SharedEmailServer(Body, frozen=True, tag="shared"):
    """Neon's own email server."""

    sender_email: str | UnsetType = UNSET
    sender_name: str | UnsetType = UNSET


class StandardEmailServer(Body, frozen=True, tag="standard"):
    """The user's own email server. Its password is required once, but is not stored."""

    host: str
    port: int
    username: str
    password: str
    sender_email: str = ""
    sender_name: str = ""


class AllowLocalhost(Body, frozen=True):
    """The permission to redirect users to localhost."""

    allow_localhost: bool = True


class OrganizationPlugin(Body, frozen=True):
    """The settings for organizations of users."""

    enabled: bool = True
    organization_limit: int = 10
    membership_limit: int = 100
    creator_role: str = "owner"
    send_invitation_email: bool = False


class MagicLinkPlugin(Body, frozen=True):
    """The settings for signing in with a link in an email. ``expires_in`` is in minutes."""

    enabled: bool = False
    expires_in: int = 5
    disable_sign_up: bool = False


class PhoneNumberPlugin(Body, frozen=True):
    """The settings for signing in with a phone number. ``otp_expires_in`` is in seconds."""

    enabled: bool = False
    otp_expires_in: int = 300


class Webhooks(Body, frozen=True):
    """The webhook that receives the events of Neon Auth."""

    enabled: bool = False
    webhook_url: str | UnsetType = UNSET
    enabled_events: list[str] | UnsetType = UNSET
    timeout_seconds: int = 5


class AuthSettings(Body, frozen=True, omit_defaults=True):
    """All settings of Neon Auth, with Neon's defaults."""

    email_and_password: EmailAndPassword = EmailAndPassword()
    email_provider: SharedEmailServer | StandardEmailServer = SharedEmailServer()
    allow_localhost: AllowLocalhost = AllowLocalhost()
    organization: OrganizationPlugin = OrganizationPlugin()
    magic_link: MagicLinkPlugin = MagicLinkPlugin()
    phone_number: PhoneNumberPlugin = PhoneNumberPlugin()
    webhooks: Webhooks = Webhooks()


_KINDS: Final = {field.name: field.type for field in msgspec.structs.fields(AuthSettings)}
_PLUGINS: Final = (
    "organization",
    "magic_link",
    "phone_number",
    "email_provider",
    "email_and_password",
)


def read(name: str) -> SettingHandler:
    """Return the handler of the request that reads a setting."""

    def handle(tx: Transaction, call: Call) -> Response:
        return respond(getattr(_settings(auth.enabled(tx, call)), name))

    return handle


def update(name: str) -> SettingHandler:
    """Return the handler of the request that changes fields of a setting."""

    def handle(tx: Transaction, call: Call) -> Response:
        integration = auth.changeable(tx, call)
        changes = call.body(dict[str, object])
        current = getattr(_settings(integration), name)
        return _store(tx, integration, name, _kept(current, changes) | changes)

    return handle


def replace(name: str) -> SettingHandler:
    """Return the handler of the request that replaces a setting. Missing fields get defaults."""

    def handle(tx: Transaction, call: Call) -> Response:
        return _store(tx, auth.changeable(tx, call), name, call.body(dict[str, object]))

    return handle


def get_plugins(tx: Transaction, call: Call) -> Response:
    """``GET .../auth/plugins``: the OAuth providers, and all settings except webhooks."""
    integration = auth.enabled(tx, call)
    settings = _settings(integration)
    plugins: Json = {name: getattr(settings, name) for name in _PLUGINS}
    plugins["allow_localhost"] = settings.allow_localhost.allow_localhost
    return respond(plugins | {"oauth_providers": raw_json(integration.oauth_providers)})


def _settings(integration: AuthIntegration) -> AuthSettings:
    return msgspec.json.decode(integration.settings, type=AuthSettings)


def _kept(current: Body, changes: Json) -> Json:
    """Return the fields that a change keeps: none if it selects another type of email server."""
    kept: Json = msgspec.to_builtins(current)
    tag = current.__struct_config__.tag
    return kept if tag is None or changes.get("type") == tag else {}


def _store(tx: Transaction, integration: AuthIntegration, name: str, fields: Json) -> Response:
    setting = decode(json_text(fields).encode(), _KINDS[name])
    if isinstance(setting, StandardEmailServer):
        setting = msgspec.structs.replace(setting, password="")
    settings = msgspec.structs.replace(_settings(integration), **{name: setting})
    tx.update(integration, settings=json_text(settings))
    return respond(setting)
