import pytest

from neonctl_async import AuthenticationError, Secret
from neonctl_async.types import ApiKey, ApiKeyCreated, ApiKeyRevoked
from tests.resources.wire import SentRequest, responding_with


async def test_list_returns_keys() -> None:
    async with responding_with([{"id": 1, "name": "ci"}, {"id": 2, "name": "laptop"}]) as exchange:
        keys = await exchange.neon.api_keys.list()
    assert keys == [ApiKey(id=1, name="ci"), ApiKey(id=2, name="laptop")]
    assert exchange.sent == SentRequest("GET", "/api_keys", {}, None)


async def test_create_returns_the_token() -> None:
    async with responding_with({"id": 177630, "key": "napi_token"}) as exchange:
        created = await exchange.neon.api_keys.create(key_name="ci")
    assert created == ApiKeyCreated(id=177630, key=Secret("napi_token"))
    assert exchange.sent == SentRequest("POST", "/api_keys", {}, {"key_name": "ci"})


async def test_revoke_returns_the_revoked_key() -> None:
    content = {"id": 177630, "name": "ci", "revoked": True, "last_used_at": None}
    async with responding_with(content) as exchange:
        revoked = await exchange.neon.api_keys.revoke(177630)
    assert revoked == ApiKeyRevoked(id=177630, name="ci", revoked=True)
    assert exchange.sent == SentRequest("DELETE", "/api_keys/177630", {}, None)


async def test_unauthorized_request_is_sent_only_once() -> None:
    async with responding_with({"message": "invalid key"}, 401) as exchange:
        with pytest.raises(AuthenticationError, match="GET /api_keys: 401"):
            await exchange.neon.api_keys.list()
    assert exchange.sent.path == "/api_keys"


async def test_boolean_key_id_is_rejected() -> None:
    async with responding_with() as exchange:
        with pytest.raises(TypeError, match="key_id"):
            await exchange.neon.api_keys.revoke(True)
    assert exchange.server.received == []
