"""``NeonClient.request``: endpoints that have no method of their own."""

from datetime import UTC, datetime

import msgspec
import pytest

from neonctl_async import InvalidResponseError, ServerError
from neonctl_async.types import Role
from tests.resources.wire import Asked, answering
from tests.support.records import EPOCH, PROJECT


class Region(msgspec.Struct):
    region_id: str
    default: bool = False


class Regions(msgspec.Struct):
    regions: list[Region]


SHOWN = {"regions": [{"region_id": "aws-us-east-2", "brand_new": 1}]}


async def test_a_typed_answer() -> None:
    async with answering(SHOWN) as exchange:
        answer = await exchange.neon.request("GET", "/regions", type=Regions)
    assert answer == Regions([Region("aws-us-east-2")])
    assert exchange.asked == Asked("GET", "/regions", {}, None)


async def test_a_typed_answer_of_no_struct() -> None:
    async with answering(SHOWN) as exchange:
        answer = await exchange.neon.request("GET", "/regions", type=dict[str, list[Region]])
    assert answer == {"regions": [Region("aws-us-east-2")]}


async def test_a_typed_answer_that_holds_a_secret() -> None:
    moment = EPOCH.isoformat()
    shown = {"branch_id": "b", "name": "ada", "created_at": moment, "updated_at": moment}
    async with answering({**shown, "password": "hunter2"}) as exchange:
        role = await exchange.neon.request("POST", "/reset", type=Role)
    assert role.password is not None
    assert role.password.reveal() == "hunter2"


@pytest.mark.parametrize("shown", [SHOWN, [1, None, {"a": []}], "text", 1, 1.5, True, None])
async def test_a_plain_answer_is_json(shown: object) -> None:
    async with answering(shown) as exchange:
        assert await exchange.neon.request("GET", "/regions") == shown


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_an_empty_answer_is_none(status: int) -> None:
    async with answering(status=status, body=b"") as exchange:
        assert await exchange.neon.request("DELETE", "/projects/p-1/vpc_endpoints/v-1") is None


async def test_query_and_body_are_sent() -> None:
    async with answering({}) as exchange:
        await exchange.neon.request(
            "patch",
            f"/projects/{PROJECT}",
            query={
                "from": datetime(2026, 1, 1, tzinfo=UTC),
                "pooled": True,
                "search": "a&b",
                "left_out": msgspec.UNSET,
            },
            body={"project": {"name": "shop", "note": None}},
            type=dict[str, object],
        )
    assert exchange.asked == Asked(
        "PATCH",
        f"/projects/{PROJECT}",
        {"from": "2026-01-01T00:00:00+00:00", "pooled": "true", "search": "a&b"},
        {"project": {"name": "shop", "note": None}},
    )


async def test_an_answer_of_another_type_is_invalid() -> None:
    async with answering({"regions": "none"}) as exchange:
        with pytest.raises(InvalidResponseError, match=r"\$\.regions"):
            await exchange.neon.request("GET", "/regions", type=Regions)


async def test_a_failure_has_the_class_of_its_status() -> None:
    async with answering(status=500, body=b"<html>") as exchange:
        with pytest.raises(ServerError, match="POST /regions: 500"):
            await exchange.neon.request("POST", "/regions")
    assert exchange.asked.method == "POST"


@pytest.mark.parametrize("path", ["regions", "//evil.example.com", "/../x", "/a?b=1", "/%2e%2e/x"])
async def test_a_path_that_could_leave_the_base_url_is_refused(path: str) -> None:
    async with answering() as exchange:
        with pytest.raises(ValueError, match="path is"):
            await exchange.neon.request("GET", path)
    assert exchange.server.received == []


async def test_a_raw_path_is_sent_as_it_is_written() -> None:
    async with answering({}) as exchange:
        await exchange.neon.request("GET", "/a%20b/%25c/d@e;f", type=dict[str, object])
    assert exchange.asked.path == "/a%20b/%25c/d@e;f"
