"""A call returns when the object is ready, even if Neon lists no operation for it."""

from typing import Any

import pytest

from neonctl_async import EndpointSpec, NeonClient, PollPolicy, RateBudget, StateTimeoutError
from neonctl_async.types import EnsuredBranch
from tests.models.records import BRANCH, ENDPOINT
from tests.support.records import PROJECT
from tests.support.server import MisbehavingServer, Received, Respond, http_response

MAIN = {**BRANCH, "id": "br-main", "name": "main", "default": True, "project_id": PROJECT}


class Creating(MisbehavingServer):
    """A server with a branch and a compute that need ``reads``, but have no operations."""

    def __init__(self, reads: int) -> None:
        super().__init__(self._respond_to)
        self.left = reads

    @property
    def _state(self) -> str:
        return "ready" if self.left <= 0 else "init"

    @property
    def _branch(self) -> dict[str, object]:
        return {
            **BRANCH,
            "id": "br-new",
            "name": "preview",
            "project_id": PROJECT,
            "parent_id": "br-main",
            "current_state": self._state,
        }

    @property
    def _compute(self) -> dict[str, object]:
        state = "active" if self._state == "ready" else "init"
        return {**ENDPOINT, "id": "ep-new", "branch_id": "br-new", "current_state": state}

    def _respond_to(self, request: Received) -> Respond:
        path = request.path.partition(PROJECT)[2]
        if path in {"/branches/br-new", "/endpoints/ep-new"}:
            self.left -= 1
        contents: dict[str, object] = {
            "/branches": {"branches": [MAIN, self._branch]},
            "/endpoints": {"endpoints": [self._compute]},
            "/operations": {"operations": []},
            "/branches/br-new": {"branch": self._branch},
            "/endpoints/ep-new": {"endpoint": self._compute},
        }
        return http_response(content=contents[path])


async def ensure(server: Creating, wait: Any) -> EnsuredBranch:
    async with (
        server,
        NeonClient(
            "napi_test",
            base_url=server.base_url,
            budget=RateBudget.unlimited(),
            polling=PollPolicy(initial=0.01, maximum=0.02),
        ) as neon,
    ):
        return await neon.branches.ensure(
            PROJECT, name="preview", endpoints=[EndpointSpec(type="read_write")], wait=wait
        )


async def test_state_is_waited_for_if_there_are_no_operations() -> None:
    server = Creating(reads=5)
    assert not (await ensure(server, wait=True)).created
    assert server.left <= 0


async def test_without_wait_the_state_is_not_read() -> None:
    server = Creating(reads=5)
    ensured = await ensure(server, wait=False)
    assert (ensured.branch.current_state, ensured.operations) == ("init", [])
    assert server.left == 5


async def test_state_that_is_not_reached_is_an_error_with_the_result() -> None:
    with pytest.raises(StateTimeoutError, match=r"branch br-new .* did not become") as caught:
        await ensure(Creating(reads=10_000), wait=0.1)
    assert isinstance(caught.value.result, EnsuredBranch)
