"""``NeonClient.request``, which calls endpoints that have no method."""

from datetime import UTC, datetime

import msgspec
import pytest

from neonctl_async import InvalidResponseError, Secret, ServerError
from neonctl_async.types import Role
from tests.models.records import ROLE
from tests.resources.wire import Call, Response, responding_with


class Region(msgspec.Struct):
    region_id: str
    default: bool = False


class Regions(msgspec.Struct):
    regions: list[Region]


CONTENT = {"regions": [{"region_id": "aws-us-east-2", "brand_new": 1}]}
BODY = {"project": {"name": "shop", "note": None}}


CALLS = [
    Call(
        lambda neon: neon.request("GET", "/regions", type=Regions),
        "GET /regions",
        Response(CONTENT, Regions([Region("aws-us-east-2")])),
    ),
    Call(
        lambda neon: neon.request("GET", "/regions", type=dict[str, list[Region]]),
        "GET /regions",
        Response(CONTENT, {"regions": [Region("aws-us-east-2")]}),
    ),
    Call(
        lambda neon: neon.request(
            "patch",
            "/projects/p-1",
            query={
                "from": datetime(2026, 1, 1, tzinfo=UTC),
                "pooled": True,
                "search": "a&b",
                "left_out": msgspec.UNSET,
            },
            body=BODY,
            type=dict[str, object],
        ),
        "PATCH /projects/p-1",
        Response({}, {}),
        query={"from": "2026-01-01T00:00:00+00:00", "pooled": "true", "search": "a&b"},
        body=BODY,
    ),
    Call(
        lambda neon: neon.request("GET", "/a%20b/%25c/d@e;f", type=dict[str, object]),
        "GET /a%20b/%25c/d@e;f",
        Response({}, {}),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


async def test_response_decodes_to_a_struct_with_a_secret() -> None:
    async with responding_with({**ROLE, "password": "hunter2"}) as exchange:
        role = await exchange.neon.request("POST", "/reset", type=Role)
    assert role.password == Secret("hunter2")


@pytest.mark.parametrize("content", [CONTENT, [1, None, {"a": []}], "text", 1, 1.5, True, None])
async def test_response_without_type_is_plain_json(content: object) -> None:
    async with responding_with(content) as exchange:
        assert await exchange.neon.request("GET", "/regions") == content


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_empty_response_is_none(status: int) -> None:
    async with responding_with(status=status, body=b"") as exchange:
        assert await exchange.neon.request("DELETE", "/projects/p-1/vpc_endpoints/v-1") is None


async def test_response_of_another_type_is_invalid() -> None:
    async with responding_with({"regions": "none"}) as exchange:
        with pytest.raises(InvalidResponseError, match=r"\$\.regions"):
            await exchange.neon.request("GET", "/regions", type=Regions)


async def test_error_status_selects_the_error_class() -> None:
    async with responding_with(status=500, body=b"<html>") as exchange:
        with pytest.raises(ServerError, match="POST /regions: 500"):
            await exchange.neon.request("POST", "/regions")
    assert exchange.sent.method == "POST"


@pytest.mark.parametrize("path", ["regions", "//evil.example.com", "/../x", "/a?b=1", "/%2e%2e/x"])
async def test_path_that_could_leave_the_base_url_is_rejected(path: str) -> None:
    async with responding_with() as exchange:
        with pytest.raises(ValueError, match="path is"):
            await exchange.neon.request("GET", path)
    assert exchange.server.received == []
