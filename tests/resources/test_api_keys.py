import pytest

from neonctl_async import AuthenticationError, Secret
from neonctl_async.types import ApiKey, ApiKeyCreated, ApiKeyRevoked
from tests.resources.wire import Asked, answering


async def test_list() -> None:
    async with answering([{"id": 1, "name": "ci"}, {"id": 2, "name": "laptop"}]) as exchange:
        keys = await exchange.neon.api_keys.list()
    assert keys == [ApiKey(id=1, name="ci"), ApiKey(id=2, name="laptop")]
    assert exchange.asked == Asked("GET", "/api_keys", {}, None)


async def test_create() -> None:
    async with answering({"id": 177630, "key": "napi_token"}) as exchange:
        created = await exchange.neon.api_keys.create(key_name="ci")
    assert created == ApiKeyCreated(id=177630, key=Secret("napi_token"))
    assert exchange.asked == Asked("POST", "/api_keys", {}, {"key_name": "ci"})


async def test_revoke() -> None:
    shown = {"id": 177630, "name": "ci", "revoked": True, "last_used_at": None}
    async with answering(shown) as exchange:
        revoked = await exchange.neon.api_keys.revoke(177630)
    assert revoked == ApiKeyRevoked(id=177630, name="ci", revoked=True)
    assert exchange.asked == Asked("DELETE", "/api_keys/177630", {}, None)


async def test_a_revoked_key_is_asked_about_exactly_once() -> None:
    async with answering({"message": "invalid key"}, 401) as exchange:
        with pytest.raises(AuthenticationError, match="GET /api_keys: 401"):
            await exchange.neon.api_keys.list()
    assert exchange.asked.path == "/api_keys"


async def test_true_is_no_key_id() -> None:
    async with answering() as exchange:
        with pytest.raises(TypeError, match="key_id"):
            await exchange.neon.api_keys.revoke(True)
    assert exchange.server.received == []
