import pytest

from neonctl_async import AuthenticationError, Secret
from neonctl_async.types import ApiKey, ApiKeyCreated, ApiKeyRevoked
from tests.resources.wire import Call, Response, responding_with

CALLS = [
    Call(
        lambda neon: neon.api_keys.list(),
        "GET /api_keys",
        Response(
            [{"id": 1, "name": "ci"}, {"id": 2, "name": "laptop"}],
            [ApiKey(id=1, name="ci"), ApiKey(id=2, name="laptop")],
        ),
    ),
    Call(
        lambda neon: neon.api_keys.create(key_name="ci"),
        "POST /api_keys",
        Response({"id": 7, "key": "napi_token"}, ApiKeyCreated(id=7, key=Secret("napi_token"))),
        body={"key_name": "ci"},
    ),
    Call(
        lambda neon: neon.api_keys.revoke(7),
        "DELETE /api_keys/7",
        Response(
            {"id": 7, "name": "ci", "revoked": True, "last_used_at": None},
            ApiKeyRevoked(id=7, name="ci", revoked=True),
        ),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


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
