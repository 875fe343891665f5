"""The smallest valid JSON of each record of Neon Auth."""

from neonctl_async.models.base import Model
from neonctl_async.models.services import auth
from tests.models.records import NOON, JsonObject

INTEGRATION: JsonObject = {
    "auth_provider": "better_auth",
    "auth_provider_project_id": "auth-1",
    "branch_id": "br-1",
    "db_name": "neondb",
    "created_at": NOON,
    "owned_by": "neon",
    "jwks_url": "https://auth.example.com/jwks.json",
}
KEYS: JsonObject = {
    "auth_provider": "better_auth",
    "auth_provider_project_id": "auth-1",
    "pub_client_key": "",
    "secret_server_key": "",
    "jwks_url": "https://auth.example.com/jwks.json",
    "schema_name": "neon_auth",
    "table_name": "users_sync",
}
DOMAIN: JsonObject = {"domain": "https://shop.example.com", "auth_provider": "better_auth"}
OAUTH_PROVIDER: JsonObject = {"id": "google", "type": "shared"}
EMAIL_AND_PASSWORD: JsonObject = {
    "enabled": True,
    "email_verification_method": "otp",
    "require_email_verification": True,
    "auto_sign_in_after_verification": True,
    "send_verification_email_on_sign_up": True,
    "send_verification_email_on_sign_in": False,
    "disable_sign_up": False,
}
ORGANIZATION_PLUGIN: JsonObject = {
    "enabled": True,
    "organization_limit": 10,
    "membership_limit": 100,
    "creator_role": "owner",
    "send_invitation_email": False,
}
MAGIC_LINK_PLUGIN: JsonObject = {"enabled": True, "expires_in": 5, "disable_sign_up": False}

MINIMAL: dict[type[Model], JsonObject] = {
    auth.AuthIntegration: INTEGRATION,
    auth.AuthKeys: KEYS,
    auth.AuthTransferResponse: {"url": "https://auth.example.com/transfer"},
    auth.AuthTrustedDomain: DOMAIN,
    auth.AuthTrustedDomainsResponse: {"domains": [DOMAIN]},
    auth.AuthUser: {"id": "user-1"},
    auth.OAuthProvider: OAUTH_PROVIDER,
    auth.OAuthProvidersResponse: {"providers": [OAUTH_PROVIDER]},
    auth.AuthConfig: {"name": "Shop"},
    auth.AuthEmailAndPassword: EMAIL_AND_PASSWORD,
    auth.AuthEmailProvider: {"type": "shared"},
    auth.AuthLocalhost: {"allow_localhost": True},
    auth.AuthMagicLinkPlugin: MAGIC_LINK_PLUGIN,
    auth.AuthOrganizationPlugin: ORGANIZATION_PLUGIN,
    auth.AuthPhoneNumberPlugin: {"enabled": True},
    auth.AuthPlugins: {},
    auth.AuthTestEmail: {"success": True},
    auth.AuthWebhook: {"enabled": True},
}
"""The required fields of every record of Neon Auth that responses contain."""
