"""The argument ``wait=`` of calls that start operations."""

import asyncio

import pytest

from neonctl_async import (
    NotFoundError,
    Operation,
    OperationFailedError,
    PollPolicy,
    WaitOptions,
    WaitTimeoutError,
)
from neonctl_async.types import BranchCreated, BranchDeleted, ProjectCreated
from tests.models import records
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, branch_json, client_of, operation_json, statuses
from tests.support.server import Received, Respond, http_response

pytestmark = pytest.mark.virtual_time


def serve_creation(fake_neon: FakeNeon, *ids: str) -> None:
    """Respond to a POST with these operations, all with the status ``scheduling``."""

    def fault(request: Received) -> Respond | None:
        if request.method == "GET":
            return None
        operations = [operation_json(id, "scheduling", at=-1) for id in ids]
        return http_response(201, {"branch": branch_json(), "operations": operations})

    fake_neon.fault = fault


async def test_wait_returns_the_final_records(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=2)
    fake_neon.start("b", ends=4)
    serve_creation(fake_neon, "a", "b")
    created = await fake_neon.client.branches.create(PROJECT, wait=True)
    assert asyncio.get_running_loop().time() >= 4
    assert isinstance(created, BranchCreated)
    assert statuses(created.operations) == [("a", "finished"), ("b", "finished")]


async def test_without_wait_the_call_returns_at_once(fake_neon: FakeNeon) -> None:
    serve_creation(fake_neon, "a")
    created = await fake_neon.client.branches.create(PROJECT)
    assert [record.status for record in created.operations] == ["scheduling"]
    assert len(fake_neon.received) == 1


async def test_failed_operation_error_has_the_response_as_result(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1, status="failed")
    fake_neon.start("b", ends=2)
    serve_creation(fake_neon, "a", "b")
    with pytest.raises(OperationFailedError) as caught:
        await fake_neon.client.branches.create(PROJECT, wait=True)
    result = caught.value.result
    assert isinstance(result, BranchCreated)
    assert caught.value.maybe_delivered is True  # a second request would create another branch
    assert result.branch.id == "br-quiet-sun-87654321"
    assert [record.status for record in result.operations] == ["failed", "finished"]


async def test_wait_timeout_error_has_the_response_as_result(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1)
    fake_neon.start("b", ends=100)
    serve_creation(fake_neon, "a", "b")
    with pytest.raises(WaitTimeoutError) as caught:
        await fake_neon.client.branches.create(PROJECT, wait=10)
    assert asyncio.get_running_loop().time() == pytest.approx(10, abs=0.1)
    assert isinstance(caught.value.result, BranchCreated)
    assert [record.status for record in caught.value.result.operations] == ["finished", "running"]


async def test_wait_after_a_timeout_reports_the_operations_that_failed_before_it(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("a", states={0: "error"}, error="out of capacity")
    fake_neon.start("b", ends=15)
    serve_creation(fake_neon, "a", "b")
    with pytest.raises(WaitTimeoutError) as caught:
        await fake_neon.client.branches.create(PROJECT, wait=10)
    failure = f"of branch br-quiet-sun-87654321 in {PROJECT} is error: out of capacity"
    assert str(caught.value).endswith(f"; failed: create_branch a {failure}")
    with pytest.raises(OperationFailedError, match=failure):
        await fake_neon.client.operations.wait([*caught.value.settled, *caught.value.pending])
    assert asyncio.get_running_loop().time() == pytest.approx(15, abs=3)


async def test_api_error_of_the_wait_has_the_response_as_result(fake_neon: FakeNeon) -> None:
    serve_creation(fake_neon, "vanished")
    with pytest.raises(NotFoundError) as caught:
        await fake_neon.client.branches.create(PROJECT, wait=True)
    assert isinstance(caught.value.result, BranchCreated)
    assert [record.id for record in caught.value.result.operations] == ["vanished"]


async def test_error_of_the_request_has_no_result(fake_neon: FakeNeon) -> None:
    with pytest.raises(NotFoundError) as caught:
        await fake_neon.client.branches.create(PROJECT, wait=True)
    assert caught.value.result is None


async def test_wait_options_set_the_timeout(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=100)
    serve_creation(fake_neon, "a")
    with pytest.raises(WaitTimeoutError, match="within 10 s"):
        await fake_neon.client.branches.create(PROJECT, wait=WaitOptions(timeout=10))
    assert asyncio.get_running_loop().time() == pytest.approx(10, abs=0.1)


async def test_on_update_receives_every_change(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "running", 2: "cancelling", 4: "skipped"})
    serve_creation(fake_neon, "a")
    seen: list[Operation] = []
    await fake_neon.client.branches.create(PROJECT, wait=WaitOptions(on_update=seen.append))
    assert [record.status for record in seen] == ["scheduling", "running", "cancelling", "skipped"]


async def test_exception_of_on_update_has_a_note_with_the_operations(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=2)
    serve_creation(fake_neon, "a")

    def refuse(_operation: Operation) -> None:
        raise OSError("the screen is gone")

    with pytest.raises(OSError, match="the screen is gone") as caught:
        await fake_neon.client.branches.create(PROJECT, wait=WaitOptions(on_update=refuse))
    [note] = caught.value.__notes__
    assert "Neon has executed the request: create_branch a of branch br-quiet-sun" in note


@pytest.mark.parametrize("wait", [-1.0, float("nan")])
async def test_invalid_timeout_is_rejected_before_the_request(
    fake_neon: FakeNeon, wait: float
) -> None:
    serve_creation(fake_neon, "a")
    with pytest.raises(ValueError, match="wait is"):
        await fake_neon.client.branches.create(PROJECT, wait=wait)
    assert fake_neon.received == []


async def test_response_without_operations_needs_no_wait(fake_neon: FakeNeon) -> None:
    fake_neon.fault = lambda _request: http_response(204, body=b"")
    deleted = await fake_neon.client.branches.delete(PROJECT, "br-quiet-sun-87654321", wait=True)
    assert deleted == BranchDeleted()


async def test_project_creation_can_wait(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=2)
    content = {
        "project": {**records.PROJECT, "id": PROJECT},
        "branch": branch_json(),
        "operations": [operation_json("a", "running", at=-1)],
    }
    fake_neon.fault = lambda request: (
        http_response(201, content) if request.method == "POST" else None
    )
    created = await fake_neon.client.projects.create(name="demo", wait=True)
    assert isinstance(created, ProjectCreated)
    assert [record.status for record in created.operations] == ["finished"]


async def test_wait_true_waits_for_at_most_300_seconds(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1000)
    serve_creation(fake_neon, "a")
    async with client_of(fake_neon, polling=PollPolicy.constant(50)) as neon:
        with pytest.raises(WaitTimeoutError, match="within 300 s"):
            await neon.branches.create(PROJECT, wait=True)
        assert asyncio.get_running_loop().time() == pytest.approx(300, abs=0.1)
