"""The lists of a project: shared requests, and the search for operations."""

import asyncio
from datetime import timedelta

import pytest

from neonctl_async import ClientClosedError, NeonClient
from tests.models.records import BRANCH
from tests.support.records import EPOCH, PROJECT, JsonObject, client_of, operation_json
from tests.support.server import MisbehavingServer, Received, Respond, hang, http_response
from tests.support.until import until


class History(MisbehavingServer):
    """A server with a new branch, and an operation for each of the last seconds.

    The operation of the branch is at ``position``, -1 for none; its creation was ``age`` seconds
    ago.
    """

    def __init__(self, length: int, position: int, age: int) -> None:
        super().__init__(self._respond_to)
        self._branch: JsonObject = {
            **BRANCH,
            "id": "br-new",
            "name": "preview",
            "parent_id": "br-main",
            "current_state": "init",
            "created_at": _ago(age),
        }
        self._operations = [_operation(number, "br-other") for number in range(length)]
        if position >= 0:
            self._operations[position] = _operation(position, "br-new")

    @property
    def limits(self) -> list[str]:
        """The limits of the requests for operations."""
        targets = [each.target for each in self.received if "/operations" in each.target]
        return [target.partition("limit=")[2] for target in targets]

    def _respond_to(self, request: Received) -> Respond:
        if request.path.endswith("/branches"):
            main = {**BRANCH, "id": "br-main", "name": "main", "default": True}
            return http_response(content={"branches": [main, self._branch]})
        limit = int(request.target.partition("limit=")[2])
        return http_response(content={"operations": self._operations[:limit]})


def _ago(seconds: float) -> str:
    return (EPOCH - timedelta(seconds=seconds)).isoformat()


def _operation(number: int, branch_id: str) -> JsonObject:
    times: JsonObject = {"created_at": _ago(number)}
    return {**operation_json(f"op-{number}"), **times, "branch_id": branch_id}


@pytest.mark.parametrize(
    ("length", "position", "age", "limits", "found"),
    [
        (0, -1, 10, ["100"], []),
        (50, -1, 1000, ["100"], []),
        (500, -1, 10, ["100"], []),
        (500, 99, 1000, ["100"], ["op-99"]),
        (500, 100, 1000, ["100", "1000"], ["op-100"]),
        (2000, 1500, 2000, ["100", "1000"], []),
    ],
)
async def test_operations_are_read_as_far_as_necessary(
    length: int, position: int, age: int, limits: list[str], found: list[str]
) -> None:
    async with History(length, position, age) as history, client_of(history) as neon:
        ensured = await neon.branches.ensure(PROJECT, name="preview")
    assert [operation.id for operation in ensured.operations] == found
    assert history.limits == limits


async def test_cancelled_call_does_not_stop_the_request_of_others(
    neon: NeonClient, project_id: str
) -> None:
    await neon.branches.create(project_id, name="preview", wait=True)
    cancelled, other = (
        asyncio.create_task(neon.branches.ensure(project_id, name="preview")) for _ in range(2)
    )
    await asyncio.sleep(0)
    cancelled.cancel()
    assert not (await other).created
    assert cancelled.cancelled()


async def test_closed_client_ends_a_call() -> None:
    async with MisbehavingServer(lambda _request: hang) as server:
        neon = client_of(server)
        async with neon:
            call = asyncio.create_task(neon.branches.ensure(PROJECT, name="preview"))
            await until(lambda: bool(server.received))
        with pytest.raises(
            ClientClosedError, match="the client was closed during a call to ensure"
        ):
            await call
        with pytest.raises(ClientClosedError):
            await neon.branches.ensure(PROJECT, name="preview")
