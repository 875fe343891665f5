import pytest

from neonctl_async.types import (
    AuthConfig,
    AuthEmailAndPassword,
    AuthEmailProvider,
    AuthMagicLinkPlugin,
    AuthOrganizationPlugin,
    AuthPhoneNumberPlugin,
    AuthPlugins,
    AuthTestEmail,
    AuthWebhook,
)
from tests.models.records import JsonObject
from tests.models.services.auth_records import (
    EMAIL_AND_PASSWORD,
    MAGIC_LINK_PLUGIN,
    OAUTH_PROVIDER,
    ORGANIZATION_PLUGIN,
)
from tests.resources.wire import Call, Response, record

PATH = "/projects/p-1/branches/br-1/auth"
STANDARD: JsonObject = {
    "type": "standard",
    "host": "smtp.example.com",
    "port": 587,
    "username": "ada",
    "password": "hunter2",
    "sender_email": "ada@example.com",
    "sender_name": "Ada",
}
WEBHOOK: JsonObject = {
    "enabled": True,
    "webhook_url": "https://shop.example.com/hook",
    "enabled_events": ["user.created", "send.otp"],
    "timeout_seconds": 10,
}
PLUGINS: JsonObject = {
    "organization": ORGANIZATION_PLUGIN,
    "magic_link": MAGIC_LINK_PLUGIN,
    "phone_number": {"enabled": False},
    "email_provider": {"type": "shared"},
    "email_and_password": EMAIL_AND_PASSWORD,
    "oauth_providers": [OAUTH_PROVIDER],
    "allow_localhost": False,
}
ORGANIZATION = record(AuthOrganizationPlugin, ORGANIZATION_PLUGIN)
MAGIC_LINK = record(AuthMagicLinkPlugin, MAGIC_LINK_PLUGIN)
PHONE_NUMBER = record(AuthPhoneNumberPlugin, {"enabled": True, "otp_expires_in": 60})
SIGN_IN = record(AuthEmailAndPassword, EMAIL_AND_PASSWORD)

CALLS = [
    Call(
        lambda neon: neon.auth.update_config("p-1", "br-1", name="Shop"),
        f"PATCH {PATH}/config",
        record(AuthConfig, {"name": "Shop"}),
        body={"name": "Shop"},
    ),
    Call(
        lambda neon: neon.auth.get_allow_localhost("p-1", "br-1"),
        f"GET {PATH}/allow_localhost",
        Response({"allow_localhost": True}, True),
    ),
    Call(
        lambda neon: neon.auth.update_allow_localhost("p-1", "br-1", allow_localhost=False),
        f"PATCH {PATH}/allow_localhost",
        Response({"allow_localhost": False}, False),
        body={"allow_localhost": False},
    ),
    Call(
        lambda neon: neon.auth.get_email_and_password("p-1", "br-1"),
        f"GET {PATH}/email_and_password",
        SIGN_IN,
    ),
    Call(
        lambda neon: neon.auth.update_email_and_password("p-1", "br-1", enabled=False),
        f"PATCH {PATH}/email_and_password",
        SIGN_IN,
        body={"enabled": False},
    ),
    Call(
        lambda neon: neon.auth.update_email_and_password(
            "p-1",
            "br-1",
            enabled=True,
            email_verification_method="otp",
            require_email_verification=True,
            auto_sign_in_after_verification=True,
            send_verification_email_on_sign_up=True,
            send_verification_email_on_sign_in=False,
            disable_sign_up=False,
        ),
        f"PATCH {PATH}/email_and_password",
        SIGN_IN,
        body=EMAIL_AND_PASSWORD,
    ),
    Call(
        lambda neon: neon.auth.get_email_provider("p-1", "br-1"),
        f"GET {PATH}/email_provider",
        record(AuthEmailProvider, STANDARD),
    ),
    Call(
        lambda neon: neon.auth.update_email_provider("p-1", "br-1", type="shared"),
        f"PATCH {PATH}/email_provider",
        record(AuthEmailProvider, {"type": "shared"}),
        body={"type": "shared"},
    ),
    Call(
        lambda neon: neon.auth.update_email_provider(
            "p-1",
            "br-1",
            type="standard",
            host="smtp.example.com",
            port=587,
            username="ada",
            password="hunter2",
            sender_email="ada@example.com",
            sender_name="Ada",
        ),
        f"PATCH {PATH}/email_provider",
        record(AuthEmailProvider, {**STANDARD, "password": ""}),
        body=STANDARD,
    ),
    Call(
        lambda neon: neon.auth.test_email_provider(
            "p-1", "br-1", recipient_email="ada@example.com"
        ),
        f"POST {PATH}/email_provider/test",
        record(AuthTestEmail, {"success": False, "error_message": "535 wrong password"}),
        body={"recipient_email": "ada@example.com"},
    ),
    Call(
        lambda neon: neon.auth.get_plugins("p-1", "br-1"),
        f"GET {PATH}/plugins",
        record(AuthPlugins, PLUGINS),
    ),
    Call(
        lambda neon: neon.auth.update_organization_plugin("p-1", "br-1", organization_limit=1),
        f"PATCH {PATH}/plugins/organization",
        ORGANIZATION,
        body={"organization_limit": 1},
    ),
    Call(
        lambda neon: neon.auth.update_organization_plugin(
            "p-1",
            "br-1",
            enabled=True,
            organization_limit=10,
            membership_limit=100,
            creator_role="owner",
            send_invitation_email=False,
        ),
        f"PATCH {PATH}/plugins/organization",
        ORGANIZATION,
        body=ORGANIZATION_PLUGIN,
    ),
    Call(
        lambda neon: neon.auth.update_magic_link_plugin("p-1", "br-1", expires_in=5),
        f"PATCH {PATH}/plugins/magic-link",
        MAGIC_LINK,
        body={"expires_in": 5},
    ),
    Call(
        lambda neon: neon.auth.update_magic_link_plugin(
            "p-1", "br-1", enabled=True, expires_in=5, disable_sign_up=False
        ),
        f"PATCH {PATH}/plugins/magic-link",
        MAGIC_LINK,
        body=MAGIC_LINK_PLUGIN,
    ),
    Call(
        lambda neon: neon.auth.get_phone_number_plugin("p-1", "br-1"),
        f"GET {PATH}/plugins/phone-number",
        PHONE_NUMBER,
    ),
    Call(
        lambda neon: neon.auth.update_phone_number_plugin(
            "p-1", "br-1", enabled=True, otp_expires_in=60
        ),
        f"PATCH {PATH}/plugins/phone-number",
        PHONE_NUMBER,
        body={"enabled": True, "otp_expires_in": 60},
    ),
    Call(
        lambda neon: neon.auth.get_webhook("p-1", "br-1"),
        f"GET {PATH}/webhooks",
        record(AuthWebhook, {"enabled": False}),
    ),
    Call(
        lambda neon: neon.auth.update_webhook("p-1", "br-1", enabled=False),
        f"PUT {PATH}/webhooks",
        record(AuthWebhook, {"enabled": False}),
        body={"enabled": False},
    ),
    Call(
        lambda neon: neon.auth.update_webhook(
            "p-1",
            "br-1",
            enabled=True,
            webhook_url="https://shop.example.com/hook",
            enabled_events=("user.created", "send.otp"),
            timeout_seconds=10,
        ),
        f"PUT {PATH}/webhooks",
        record(AuthWebhook, WEBHOOK),
        body=WEBHOOK,
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()
