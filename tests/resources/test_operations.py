import pytest

from neonctl_async import InvalidResponseError, NotFoundError, Operation
from tests.models.records import OPERATION, decode
from tests.resources.wire import Call, Response, record_in, responding_with

PATH = "/projects/p-1/operations"
PAGE = [{**OPERATION, "id": "op-2"}, OPERATION]
FOUND = record_in("operation", Operation, {**OPERATION, "status": "finished"})

CALLS = [
    Call(lambda neon: neon.operations.get("p-1", "op-1"), f"GET {PATH}/op-1", FOUND),
    Call(
        lambda neon: neon.operations.list("p-1", limit=1000).collect(),
        f"GET {PATH}",
        Response({"operations": PAGE}, [decode(Operation, one) for one in PAGE]),
        query={"limit": "1000"},
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


async def test_unknown_operation_raises_not_found_error() -> None:
    async with responding_with({"message": "no such operation"}, 404) as exchange:
        with pytest.raises(NotFoundError, match="no such operation"):
            await exchange.neon.operations.get("p-1", "op-1")
    assert exchange.sent.path == f"{PATH}/op-1"


@pytest.mark.parametrize("change", [{"id": "op-2"}, {"project_id": "p-2"}])
async def test_record_of_another_operation_is_an_invalid_response(change: dict[str, str]) -> None:
    async with responding_with({"operation": {**OPERATION, **change}}) as exchange:
        with pytest.raises(InvalidResponseError, match="another operation") as caught:
            await exchange.neon.operations.get("p-1", "op-1")
    error = caught.value
    assert (error.method, error.path, error.status) == ("GET", f"{PATH}/op-1", 200)
    assert "()" not in str(error)
