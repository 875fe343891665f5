"""The argument ``wait=`` of calls that start operations."""

import asyncio

import pytest

from neonctl_async import NotFoundError, OperationFailedError, PollPolicy, WaitTimeoutError
from neonctl_async.types import BranchCreated, BranchDeleted, ProjectCreated
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, branch_json, client_of, operation_json
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


async def test_wait_returns_the_final_records() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=2)
    fake_neon.start("b", ends=4)
    serve_creation(fake_neon, "a", "b")
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        created = await neon.branches.create(PROJECT, wait=True)
        assert asyncio.get_running_loop().time() >= 4
    assert isinstance(created, BranchCreated)
    assert [(record.id, record.status) for record in created.operations] == [
        ("a", "finished"),
        ("b", "finished"),
    ]


async def test_without_wait_the_call_returns_at_once() -> None:
    fake_neon = FakeNeon()
    serve_creation(fake_neon, "a")
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        created = await neon.branches.create(PROJECT)
    assert [record.status for record in created.operations] == ["scheduling"]
    assert len(fake_neon.server.received) == 1


async def test_failed_operation_error_has_the_response_as_result() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=1, status="failed")
    fake_neon.start("b", ends=2)
    serve_creation(fake_neon, "a", "b")
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        with pytest.raises(OperationFailedError) as caught:
            await neon.branches.create(PROJECT, wait=True)
    result = caught.value.result
    assert isinstance(result, BranchCreated)
    assert caught.value.maybe_delivered is True  # a second request would create another branch
    assert result.branch.id == "br-quiet-sun-87654321"
    assert [record.status for record in result.operations] == ["failed", "finished"]


async def test_wait_timeout_error_has_the_response_as_result() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=1)
    fake_neon.start("b", ends=100)
    serve_creation(fake_neon, "a", "b")
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        with pytest.raises(WaitTimeoutError) as caught:
            await neon.branches.create(PROJECT, wait=10)
        assert asyncio.get_running_loop().time() == pytest.approx(10, abs=0.1)
    assert isinstance(caught.value.result, BranchCreated)
    assert [record.status for record in caught.value.result.operations] == ["finished", "running"]


async def test_api_error_of_the_wait_has_the_response_as_result() -> None:
    fake_neon = FakeNeon()
    serve_creation(fake_neon, "vanished")
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        with pytest.raises(NotFoundError) as caught:
            await neon.branches.create(PROJECT, wait=True)
    assert isinstance(caught.value.result, BranchCreated)
    assert [record.id for record in caught.value.result.operations] == ["vanished"]


async def test_error_of_the_request_has_no_result() -> None:
    fake_neon = FakeNeon()
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        with pytest.raises(NotFoundError) as caught:
            await neon.branches.create(PROJECT, wait=True)
    assert caught.value.result is None


@pytest.mark.parametrize("wait", [-1.0, float("nan")])
async def test_invalid_timeout_is_rejected_before_the_request(
    wait: float,
) -> None:
    fake_neon = FakeNeon()
    serve_creation(fake_neon, "a")
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        with pytest.raises(ValueError, match="wait is"):
            await neon.branches.create(PROJECT, wait=wait)
    assert fake_neon.server.received == []


async def test_response_without_operations_needs_no_wait() -> None:
    fake_neon = FakeNeon()
    fake_neon.fault = lambda _request: http_response(204, body=b"")
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        deleted = await neon.branches.delete(PROJECT, "br-quiet-sun-87654321", wait=True)
    assert deleted == BranchDeleted()


async def test_project_creation_can_wait() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=2)
    project = {
        "id": PROJECT,
        "name": "demo",
        "platform_id": "aws",
        "region_id": "aws-us-east-2",
        "provisioner": "k8s-pod",
        "pg_version": 17,
        "proxy_host": "us-east-2.aws.neon.tech",
        "cpu_used_sec": 0,
        "branch_logical_size_limit": 512,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
    }
    content = {
        "project": project,
        "branch": branch_json(),
        "operations": [operation_json("a", "running", at=-1)],
    }
    fake_neon.fault = lambda request: (
        http_response(201, content) if request.method == "POST" else None
    )
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        created = await neon.projects.create(name="demo", wait=True)
    assert isinstance(created, ProjectCreated)
    assert [record.status for record in created.operations] == ["finished"]


async def test_wait_true_waits_for_at_most_300_seconds() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=1000)
    serve_creation(fake_neon, "a")
    polls = PollPolicy.constant(50)
    async with fake_neon.server, client_of(fake_neon.server, polling=polls) as neon:
        with pytest.raises(WaitTimeoutError, match="within 300 s"):
            await neon.branches.create(PROJECT, wait=True)
        assert asyncio.get_running_loop().time() == pytest.approx(300, abs=0.1)
