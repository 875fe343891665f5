"""Waits until nothing runs in a project."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from neonctl_async import (
    ClientClosedError,
    NeonClient,
    NotFoundError,
    Operation,
    OperationFailedError,
    ServerError,
    StateTimeoutError,
)
from neonctl_local import Durations, LocalControlPlane
from tests.support.clock import now, skip_ahead
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of, statuses
from tests.support.server import Received, Respond, http_response
from tests.support.tasks import cancel

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.control_plane(durations=Durations(default=3.0)),
]


@pytest.fixture
async def other(control_plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    """Another tool, which shares nothing with the client under test."""
    async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as other:
        yield other


async def test_wait_covers_operations_of_other_tools(neon: NeonClient, other: NeonClient) -> None:
    created = await other.projects.create(name="shop")
    done = await neon.operations.wait_for_project(created.project.id)
    assert [each.id for each in done] == [each.id for each in created.operations]
    assert {each.status for each in done} == {"finished"}
    assert await neon.operations.wait_for_project(created.project.id) == []


async def test_wait_covers_operations_that_start_meanwhile(fake_neon: FakeNeon) -> None:
    fake_neon.start("history", states={0.0: "failed"})
    fake_neon.start("a", ends=10)
    updates: list[tuple[str, str]] = []

    def note(record: Operation) -> None:
        updates.append((record.id, record.status))

    wait = asyncio.create_task(
        fake_neon.client.operations.wait_for_project(PROJECT, on_update=note)
    )
    await asyncio.sleep(5)
    fake_neon.start("b", states={5.0: "running", 6.0: "skipped"})
    fake_neon.start("c", states={5.0: "running", 30.0: "finished"})
    done = await wait
    assert sorted(statuses(done)) == [("a", "finished"), ("b", "skipped"), ("c", "finished")]
    assert ("b", "skipped") in updates
    assert {id for id, _ in updates} == {"a", "b", "c"}
    assert 30 <= now() < 45


async def test_failures_are_raised_when_nothing_runs(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=2, status="failed")
    fake_neon.start("b", ends=20)
    with pytest.raises(OperationFailedError, match="1 of 2 operations failed") as caught:
        await fake_neon.client.operations.wait_for_project(PROJECT)
    assert now() >= 20
    assert statuses(caught.value.failed) == [("a", "failed")]
    assert len(caught.value.settled) == 2


async def test_failures_are_returned_on_request(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=2, status="failed")
    done = await fake_neon.client.operations.wait_for_project(PROJECT, raise_on_failure=False)
    assert statuses(done) == [("a", "failed")]


async def test_fail_fast_raises_at_the_first_failure(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=2, status="failed")
    fake_neon.start("b", ends=100)
    with pytest.raises(OperationFailedError) as caught:
        await fake_neon.client.operations.wait_for_project(PROJECT, fail_fast=True)
    assert now() < 6
    assert [each.id for each in caught.value.pending] == ["b"]
    with pytest.raises(ValueError, match="contradict"):
        await fake_neon.client.operations.wait_for_project(
            PROJECT, fail_fast=True, raise_on_failure=False
        )


async def test_failure_that_was_missed_ends_a_wait_that_fails_fast(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=10)
    wait = asyncio.create_task(
        fake_neon.client.operations.wait_for_project(PROJECT, fail_fast=True)
    )
    await asyncio.sleep(5)
    fake_neon.start("b", states={5.0: "failed"})
    fake_neon.start("c", states={5.0: "running", 100.0: "finished"})
    with pytest.raises(OperationFailedError):
        await wait
    assert now() < 20


async def test_deadline_lists_all_operations_of_the_wait(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=2)
    fake_neon.start("b", ends=1e6)
    with pytest.raises(StateTimeoutError, match=r"did not become 'idle' within 10 s") as caught:
        await fake_neon.client.operations.wait_for_project(PROJECT, timeout=10)
    assert now() == pytest.approx(10, abs=0.01)
    assert [each.id for each in caught.value.settled] == ["a"]
    assert [each.id for each in caught.value.pending] == ["b"]
    assert (caught.value.timeout, caught.value.state) == (10, "busy")


@pytest.mark.parametrize("ends", [0.5, 100.0])
async def test_loop_that_was_blocked_past_the_deadline_lists_once_more(
    fake_neon: FakeNeon, monkeypatch: pytest.MonkeyPatch, ends: float
) -> None:
    fake_neon.start("a", ends=ends)
    wait = asyncio.create_task(fake_neon.client.operations.wait_for_project(PROJECT, timeout=1.0))
    await asyncio.sleep(0.3)
    skip_ahead(monkeypatch, 1.2)
    [outcome] = await asyncio.gather(wait, return_exceptions=True)
    assert isinstance(outcome, StateTimeoutError) == (ends == 100.0)


@pytest.mark.parametrize("raise_on_failure", [True, False])
async def test_failure_during_a_block_past_the_deadline_is_final(
    fake_neon: FakeNeon, monkeypatch: pytest.MonkeyPatch, *, raise_on_failure: bool
) -> None:
    fake_neon.start("a", ends=1.0)
    wait = asyncio.create_task(
        fake_neon.client.operations.wait_for_project(
            PROJECT, timeout=1.0, raise_on_failure=raise_on_failure
        )
    )
    await asyncio.sleep(0.3)
    fake_neon.start("b", ends=1.2, status="failed")
    skip_ahead(monkeypatch, 1.2)
    [outcome] = await asyncio.gather(wait, return_exceptions=True)
    if raise_on_failure:
        assert isinstance(outcome, OperationFailedError)
    else:
        assert isinstance(outcome, list)
        assert sorted(statuses(outcome)) == [("a", "finished"), ("b", "failed")]


async def test_transient_failures_do_not_end_the_wait(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=2)

    def fault(_request: Received) -> Respond | None:
        return http_response(503) if now() < 5 else None

    fake_neon.fault = fault
    assert await fake_neon.client.operations.wait_for_project(PROJECT) == []
    assert 5 <= now() < 10
    assert len(fake_neon.received) < 10


async def test_deadline_reports_the_failure_of_the_list(fake_neon: FakeNeon) -> None:
    fake_neon.fault = lambda _request: http_response(503, headers={"Retry-After": "3"})
    with pytest.raises(StateTimeoutError, match="its state could not be read") as caught:
        await fake_neon.client.operations.wait_for_project(PROJECT, timeout=10)
    assert isinstance(caught.value.last_error, ServerError)
    assert len(fake_neon.received) == 4


async def test_deadline_reports_the_failure_of_a_poll(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1e6)
    fake_neon.fault = lambda _request: http_response(503) if now() > 1 else None
    with pytest.raises(StateTimeoutError, match="it is 'busy'") as caught:
        await fake_neon.client.operations.wait_for_project(PROJECT, timeout=10)
    assert isinstance(caught.value.last_error, ServerError)


async def test_missing_project_ends_the_wait(neon: NeonClient) -> None:
    with pytest.raises(NotFoundError):
        await neon.operations.wait_for_project("no-project-12345678")
    with pytest.raises(ValueError, match="project_id is ''"):
        await neon.operations.wait_for_project("")


async def test_closing_the_client_and_cancelling_end_the_wait(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1e6)
    async with client_of(fake_neon) as neon:
        wait = asyncio.create_task(neon.operations.wait_for_project(PROJECT))
        cancelled = asyncio.create_task(neon.operations.wait_for_project(PROJECT))
        await asyncio.sleep(10)
        await cancel(cancelled)
        assert cancelled.cancelled()
    with pytest.raises(ClientClosedError):
        await wait
