import pytest

from neonctl_async import NotFoundError, OperationStatus
from tests.resources.wire import SentRequest, responding_with
from tests.support.records import PROJECT, operation_json

PATH = f"/projects/{PROJECT}/operations"


async def test_get_returns_the_operation() -> None:
    async with responding_with({"operation": operation_json("op-1", "finished")}) as exchange:
        operation = await exchange.neon.operations.get(PROJECT, "op-1")
    assert operation.status is OperationStatus.FINISHED
    assert operation.ref.id == "op-1"
    assert exchange.sent == SentRequest("GET", f"{PATH}/op-1", {}, None)


async def test_list_sends_the_page_size() -> None:
    content = {"operations": [operation_json("op-2"), operation_json("op-1")]}
    async with responding_with(content) as exchange:
        found = await exchange.neon.operations.list(PROJECT, limit=1000).collect()
    assert [operation.id for operation in found] == ["op-2", "op-1"]
    assert exchange.sent == SentRequest("GET", PATH, {"limit": "1000"}, None)


async def test_unknown_operation_raises_not_found_error() -> None:
    async with responding_with({"message": "no such operation"}, 404) as exchange:
        with pytest.raises(NotFoundError, match="no such operation"):
            await exchange.neon.operations.get(PROJECT, "op-1")
    assert exchange.sent.path == f"{PATH}/op-1"
