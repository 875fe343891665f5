"""Lists of operations that lag behind in a fault campaign."""

import random
from typing import Any

import msgspec
import pytest

from tests.support.records import PROJECT, operation_json
from tests.support.server import Received
from tools.faults import faults
from tools.faults.faults import Exchange, Lagging, PlaneResponse

TARGET = f"/api/v2/projects/{PROJECT}/operations?limit=10"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statuses of the operation in the responses that the client gets."""
    statuses: list[str] = []

    def note(_status: int, *, body: bytes, headers: Any) -> None:
        del headers
        statuses.extend(one["status"] for one in msgspec.json.decode(body)["operations"])

    monkeypatch.setattr(faults, "http_response", note)
    return statuses


async def poll(lagging: Lagging, status: str, target: str = TARGET) -> None:
    async def forward() -> PlaneResponse:
        content = {"operations": [operation_json(status=status)]}
        return PlaneResponse(200, msgspec.json.encode(content))

    request = Received("GET", target, {"x-request-id": "client00000001"}, b"")
    await lagging(Exchange(request, forward, random.Random(1)))


async def test_list_contains_the_record_of_the_response_before(sent: list[str]) -> None:
    lagging = Lagging()
    for status in ("scheduling", "running", "finished", "finished"):
        await poll(lagging, status)
    assert sent == ["scheduling", "scheduling", "running", "finished"]


async def test_lists_with_different_urls_lag_separately(sent: list[str]) -> None:
    lagging = Lagging()
    await poll(lagging, "running")
    await poll(lagging, "finished", f"{TARGET}&cursor=a")
    assert sent == ["running", "finished"]


async def test_failed_record_is_sent_only_once(sent: list[str]) -> None:
    lagging = Lagging()
    for status in ("failed", "running", "finished"):
        await poll(lagging, status)
    assert sent == ["failed", "running", "running"]
