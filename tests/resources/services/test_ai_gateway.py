import pytest

from neonctl_async import NotFoundError
from neonctl_async.types import BranchAiGateway
from tests.resources.wire import Call, record, responding_with

GATEWAY = {"enabled": True, "base_url": "https://ai.example.com"}


async def test_request_and_result() -> None:
    call = Call(
        lambda neon: neon.ai_gateway.get("p-1", "br-1"),
        "GET /projects/p-1/branches/br-1/ai_gateway",
        record(BranchAiGateway, GATEWAY),
    )
    await call.check()


async def test_error_of_a_branch_without_gateway_has_a_reason() -> None:
    content = {"code": "", "message": "not available", "reason": "ai_gateway_unavailable"}
    async with responding_with(content, 404) as exchange:
        with pytest.raises(NotFoundError, match="not available") as caught:
            await exchange.neon.ai_gateway.get("late-frost-12345678", "br-1")
    assert caught.value.reason == "ai_gateway_unavailable"
