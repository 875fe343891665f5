"""The settings of Neon Auth."""

import asyncio
from pathlib import Path

import pytest

from control_plane.tests.api.services.conftest import BETTER_AUTH
from control_plane.tests.client import Client, branch_path_of, serve
from control_plane.tests.test_secrets import stored

EMAIL_AND_PASSWORD = {
    "enabled": True,
    "email_verification_method": "otp",
    "require_email_verification": False,
    "auto_sign_in_after_verification": True,
    "send_verification_email_on_sign_up": False,
    "send_verification_email_on_sign_in": False,
    "disable_sign_up": False,
}
ORGANIZATION = {
    "enabled": True,
    "organization_limit": 10,
    "membership_limit": 100,
    "creator_role": "owner",
    "send_invitation_email": False,
}
MAGIC_LINK = {"enabled": False, "expires_in": 5, "disable_sign_up": False}
PHONE_NUMBER = {"enabled": False, "otp_expires_in": 300}
SERVER = {"type": "standard", "host": "mail.example.com", "port": 587, "username": "ada"}


async def test_plugins_have_the_defaults_of_neon(api: Client, auth_path: str) -> None:
    assert await api.get(f"{auth_path}/plugins") == {
        "organization": ORGANIZATION,
        "magic_link": MAGIC_LINK,
        "phone_number": PHONE_NUMBER,
        "email_provider": {"type": "shared"},
        "email_and_password": EMAIL_AND_PASSWORD,
        "oauth_providers": [],
        "allow_localhost": True,
    }
    for name, default in (
        ("email_and_password", EMAIL_AND_PASSWORD),
        ("email_provider", {"type": "shared"}),
        ("allow_localhost", {"allow_localhost": True}),
        ("plugins/phone-number", PHONE_NUMBER),
        ("webhooks", {"enabled": False, "timeout_seconds": 5}),
    ):
        assert await api.get(f"{auth_path}/{name}") == default


@pytest.mark.parametrize(
    ("path", "plugin", "before", "changes"),
    [
        ("email_and_password", "email_and_password", EMAIL_AND_PASSWORD, {"enabled": False}),
        ("plugins/organization", "organization", ORGANIZATION, {"creator_role": "admin"}),
        ("plugins/magic-link", "magic_link", MAGIC_LINK, {"expires_in": 60}),
        ("plugins/phone-number", "phone_number", PHONE_NUMBER, {"otp_expires_in": 60}),
    ],
)
async def test_changed_setting_keeps_its_other_fields(
    api: Client,
    auth_path: str,
    path: str,
    plugin: str,
    before: dict[str, object],
    changes: dict[str, object],
) -> None:
    changed = await api.request("PATCH", f"{auth_path}/{path}", changes | {"unknown": 1})
    assert changed == before | changes
    assert (await api.get(f"{auth_path}/plugins"))[plugin] == changed


async def test_unknown_type_does_not_reset_other_fields(api: Client, auth_path: str) -> None:
    path = f"{auth_path}/email_and_password"
    await api.request("PATCH", path, {"disable_sign_up": True})
    changed = await api.request("PATCH", path, {"enabled": False, "type": "unknown"})
    assert changed == EMAIL_AND_PASSWORD | {"disable_sign_up": True, "enabled": False}


async def test_localhost_is_disallowed(api: Client, auth_path: str) -> None:
    body = {"allow_localhost": False}
    assert await api.request("PATCH", f"{auth_path}/allow_localhost", body) == body
    assert (await api.get(f"{auth_path}/plugins"))["allow_localhost"] is False


async def test_invalid_setting_is_400_and_stores_nothing(api: Client, auth_path: str) -> None:
    before = await api.get(f"{auth_path}/plugins")
    for path, body in (
        ("email_and_password", {"email_verification_method": "fax"}),
        ("plugins/organization", {"organization_limit": 0}),
        ("plugins/magic-link", {"expires_in": 1}),
        ("plugins/phone-number", {"otp_expires_in": 5}),
        ("allow_localhost", {"allow_localhost": "no"}),
    ):
        (name,) = body
        await api.expect_error(400, name, "PATCH", f"{auth_path}/{path}", body)
    await api.expect_error(400, "enabled", "PUT", f"{auth_path}/webhooks", {})
    assert await api.get(f"{auth_path}/plugins") == before


async def test_email_server_is_stored_without_its_password(api: Client, auth_path: str) -> None:
    path = f"{auth_path}/email_provider"
    shown = SERVER | {"password": "", "sender_email": "", "sender_name": ""}
    assert await api.request("PATCH", path, SERVER | {"password": "pw"}) == shown
    assert await api.get(path) == shown


async def test_changed_email_server_keeps_its_other_fields(api: Client, auth_path: str) -> None:
    path = f"{auth_path}/email_provider"
    await api.request("PATCH", path, SERVER | {"password": "pw"})
    sender = {"type": "standard", "sender_email": "shop@example.com"}
    changed = await api.request("PATCH", path, sender)
    assert changed == SERVER | {"password": "", "sender_name": ""} | sender
    shared = {"type": "shared", "sender_name": "Shop"}
    assert await api.request("PATCH", path, shared) == shared


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "type"),
        ({"type": "own"}, "type"),
        (SERVER, "password"),
        ({"type": "standard", "password": "pw"}, "host"),
    ],
)
async def test_first_email_server_must_be_complete(
    api: Client, auth_path: str, body: object, field: str
) -> None:
    await api.expect_error(400, field, "PATCH", f"{auth_path}/email_provider", body)


async def test_webhooks_are_replaced(api: Client, auth_path: str) -> None:
    path = f"{auth_path}/webhooks"
    webhook = {"enabled": True, "webhook_url": "https://example.com", "timeout_seconds": 9}
    events = {"enabled_events": ["user.created"]}
    assert await api.request("PUT", path, webhook | events) == webhook | events
    assert await api.request("PUT", path, {"enabled": True}) == {
        "enabled": True,
        "timeout_seconds": 5,
    }


async def test_data_file_contains_no_password_and_no_client_secret(tmp_path: Path) -> None:
    async with serve(data=tmp_path / "plane.db") as api:
        path = f"{branch_path_of(await api.project())}/auth"
        await api.request("POST", path, BETTER_AUTH)
        await api.request("PATCH", f"{path}/email_provider", SERVER | {"password": "secret-1"})
        provider = {"id": "google", "client_id": "own-id", "client_secret": "secret-2"}
        await api.request("POST", f"{path}/oauth_providers", provider)
        secret = {"client_secret": "secret-3"}
        await api.request("PATCH", f"{path}/oauth_providers/google", secret)
        files = await asyncio.to_thread(stored, tmp_path)
    assert b"own-id" in files
    assert b"secret-" not in files
