import pytest

from neonctl_async import NotFoundError, OperationStatus
from tests.resources.wire import Asked, answering
from tests.support.records import PROJECT, operation_json

PATH = f"/projects/{PROJECT}/operations"


async def test_get() -> None:
    async with answering({"operation": operation_json("op-1", "finished")}) as exchange:
        operation = await exchange.neon.operations.get(PROJECT, "op-1")
    assert operation.status is OperationStatus.FINISHED
    assert operation.ref.id == "op-1"
    assert exchange.asked == Asked("GET", f"{PATH}/op-1", {}, None)


async def test_list() -> None:
    shown = {"operations": [operation_json("op-2"), operation_json("op-1")]}
    async with answering(shown) as exchange:
        found = await exchange.neon.operations.list(PROJECT, limit=1000).collect()
    assert [operation.id for operation in found] == ["op-2", "op-1"]
    assert exchange.asked == Asked("GET", PATH, {"limit": "1000"}, None)


async def test_an_unknown_operation_is_not_found() -> None:
    async with answering({"message": "no such operation"}, 404) as exchange:
        with pytest.raises(NotFoundError, match="no such operation"):
            await exchange.neon.operations.get(PROJECT, "op-1")
    assert exchange.asked.path == f"{PATH}/op-1"
