"""The OAuth providers of Neon Auth."""

import pytest

from control_plane.tests.client import Client

OWN = {"client_id": "id", "client_secret": "secret"}


async def test_provider_uses_a_shared_application_or_an_own_one(
    api: Client, auth_path: str
) -> None:
    path = f"{auth_path}/oauth_providers"
    shared = await api.request("POST", path, {"id": "google"})
    assert shared == {"id": "google", "type": "shared"}
    own = await api.request("POST", path, {"id": "vercel", **OWN})
    assert own == {"id": "vercel", "type": "standard", "client_id": "id"}
    assert await api.get(path) == {"providers": [shared, own]}
    assert (await api.get(f"{auth_path}/plugins"))["oauth_providers"] == [shared, own]


@pytest.mark.parametrize("provider_id", ["vercel", "microsoft"])
async def test_provider_without_a_shared_application_needs_credentials(
    api: Client, auth_path: str, provider_id: str
) -> None:
    path = f"{auth_path}/oauth_providers"
    refused = await api.send("POST", path, {"id": provider_id, "client_id": "id"})
    assert (refused.status, refused.json["code"]) == (400, "INVALID_SHARED_OAUTH_PROVIDER")
    assert await api.get(path) == {"providers": []}


async def test_changed_provider_uses_an_own_application(api: Client, auth_path: str) -> None:
    path = f"{auth_path}/oauth_providers"
    for provider_id in ("google", "github"):
        await api.request("POST", path, {"id": provider_id})
    own = {"id": "google", "type": "standard", "client_id": "id"}
    assert await api.request("PATCH", f"{path}/google", OWN) == own
    assert await api.request("PATCH", f"{path}/google", {"client_secret": "new"}) == own
    github = {"id": "github", "type": "shared"}
    assert await api.get(path) == {"providers": [own, github]}


async def test_deleted_provider_can_be_added_again(api: Client, auth_path: str) -> None:
    path = f"{auth_path}/oauth_providers"
    await api.request("POST", path, {"id": "google"})
    await api.expect_error(409, "already added", "POST", path, {"id": "google"})
    deleted = await api.send("DELETE", f"{path}/google")
    assert (deleted.status, deleted.content) == (200, b"")
    await api.request("POST", path, {"id": "google"})


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_missing_provider_is_404(api: Client, auth_path: str, method: str) -> None:
    body = OWN if method == "PATCH" else None
    path = f"{auth_path}/oauth_providers/google"
    await api.expect_error(404, "OAuth provider 'google' not found", method, path, body)


async def test_unknown_provider_is_400(api: Client, auth_path: str) -> None:
    path = f"{auth_path}/oauth_providers"
    await api.expect_error(400, "id", "POST", path, {"id": "gitlab", **OWN})
