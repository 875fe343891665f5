"""The requests of polls and their timeout."""

import pytest
from msgspec import UNSET

from neonctl_async import InvalidResponseError, OperationStatus, RateBudget, RateLimitedError
from neonctl_async.waiting.source import (
    check_operation,
    operation_request,
    page_request,
    pause_after,
)
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of, operation, operation_json, ref
from tests.support.server import hang, http_response, in_sequence

pytestmark = pytest.mark.virtual_time


def test_operation_is_read_by_project_and_operation_id() -> None:
    request = operation_request(PROJECT, "op-1")
    assert (request.method, request.path) == ("GET", f"/projects/{PROJECT}/operations/op-1")
    assert request.query == ()


def test_page_request_has_limit_and_cursor() -> None:
    request = page_request(PROJECT, 100, "next")
    assert (request.method, request.path) == ("GET", f"/projects/{PROJECT}/operations")
    assert request.query == (("limit", "100"), ("cursor", "next"))
    assert page_request(PROJECT, UNSET).query == ()


@pytest.mark.parametrize(("project_id", "id"), [(PROJECT, "op-2"), ("other", "op-1")])
async def test_record_of_another_operation_is_refused(project_id: str, id: str) -> None:
    check_operation(PROJECT, "op-1", operation("op-1"))
    with pytest.raises(InvalidResponseError, match=f"{id}' in project '{project_id}"):
        check_operation(PROJECT, "op-1", operation(id, project_id=project_id))


async def test_wait_continues_after_polls_that_hang(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1)
    fake_neon.fault = lambda _request: hang if now() < 20 else None
    [done] = await fake_neon.client.operations.wait(ref("a"))
    assert done.status == OperationStatus.FINISHED


async def test_hanging_poll_times_out_after_10_seconds_and_is_repeated(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1)
    fake_neon.fault = in_sequence(
        hang, http_response(200, {"operation": operation_json("a", "finished")})
    )
    [done] = await fake_neon.client.operations.wait(ref("a"))
    assert 10 <= now() < 16
    assert done.status == OperationStatus.FINISHED


async def test_wait_for_a_slot_does_not_count_toward_the_timeout(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1)
    async with client_of(fake_neon, budget=RateBudget(per_minute=1)) as neon:
        await neon.operations.get(PROJECT, "a")
        await neon.operations.wait(ref("a"))
        assert now() == pytest.approx(60, abs=1)
    assert len(fake_neon.received) == 2


@pytest.mark.parametrize(("demanded", "pause"), [(None, 0.0), (30.0, 30.0), (1e6, 60.0)])
def test_pause_after_a_failure_is_at_most_a_minute(demanded: float | None, pause: float) -> None:
    error = RateLimitedError(
        status=429, message="slow down", method="GET", path="/", retry_after=demanded
    )
    assert pause_after(error) == pause
