import pytest

from neonctl_async import ApiKey, ApiKeyCreated, ApiKeyRevoked, Secret
from tests.resources.wire import Asked, answering

PATH = "/organizations/org-cool-1/api_keys"


async def test_list_api_keys() -> None:
    async with answering([{"id": 1, "name": "ci", "project_id": "p-1"}]) as exchange:
        keys = await exchange.neon.organizations.list_api_keys("org-cool-1")
    assert keys == [ApiKey(id=1, name="ci", project_id="p-1")]
    assert exchange.asked == Asked("GET", PATH, {}, None)


async def test_create_an_organization_key() -> None:
    async with answering({"id": 1, "key": "neon_org_key_1"}) as exchange:
        created = await exchange.neon.organizations.create_api_key("org-cool-1", key_name="ci")
    assert created == ApiKeyCreated(id=1, key=Secret("neon_org_key_1"))
    assert exchange.asked == Asked("POST", PATH, {}, {"key_name": "ci"})


async def test_create_a_project_scoped_key() -> None:
    shown = {"id": 1, "key": "neon_project_key_1", "name": "ci", "project_id": "p-1"}
    async with answering(shown, 201) as exchange:
        created = await exchange.neon.organizations.create_api_key(
            "org-cool-1", key_name="ci", project_id="p-1"
        )
    assert (created.name, created.project_id) == ("ci", "p-1")
    assert created.key.reveal() == "neon_project_key_1"
    assert exchange.asked == Asked("POST", PATH, {}, {"key_name": "ci", "project_id": "p-1"})


async def test_revoke_api_key() -> None:
    shown = {"id": 7, "name": "ci", "revoked": True, "last_used_from_addr": ""}
    async with answering(shown) as exchange:
        revoked = await exchange.neon.organizations.revoke_api_key("org-cool-1", 7)
    assert revoked == ApiKeyRevoked(id=7, name="ci", revoked=True, last_used_from_addr="")
    assert exchange.asked == Asked("DELETE", f"{PATH}/7", {}, None)


async def test_an_empty_organization_is_refused_before_anything_is_sent() -> None:
    async with answering() as exchange:
        with pytest.raises(ValueError, match="org_id"):
            await exchange.neon.organizations.create_api_key("", key_name="ci")
    assert exchange.server.received == []
