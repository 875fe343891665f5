"""Failures, deadlines, cancellations and closed clients that end a wait for a state."""

import asyncio
import logging

import pytest

from neonctl_async import (
    AuthenticationError,
    ClientClosedError,
    PollPolicy,
    RateBudget,
    ServerError,
    StateTimeoutError,
    WaitEnded,
    WaitStarted,
)
from tests.support.clock import now, skip_ahead
from tests.support.event_recorder import EventRecorder
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of
from tests.support.server import hang, http_response
from tests.support.tasks import cancel
from tests.waiting.states.branches import BRANCH, FakeBranch

pytestmark = pytest.mark.virtual_time


async def test_transient_failures_do_not_end_a_wait(
    fake_neon: FakeNeon, caplog: pytest.LogCaptureFixture
) -> None:
    other_record = http_response(200, {"branch": {"id": "br-other-12345678"}})
    failures = {0.0: http_response(503), 1.0: hang, 20.0: other_record}
    branch = FakeBranch(fake_neon, {0.0: "init", 30.0: "ready"}, failures)
    with caplog.at_level(logging.WARNING):
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH)
    assert 30 <= now() < 36
    assert len(branch.read_at) < 15
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert f"reading branch {BRANCH} in {PROJECT} failed and will be repeated" in caplog.text


async def test_record_of_another_branch_is_no_success(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "ready"}, id="br-other-12345678")
    with pytest.raises(StateTimeoutError, match="it contains branch 'br-other-12345678'"):
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=10)


async def test_failure_that_lasts_ends_every_wait(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "init"}, {3.0: http_response(401, {"message": "revoked"})})
    waits = [fake_neon.client.branches.wait_for(PROJECT, BRANCH) for _ in range(3)]
    errors = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(error) for error in errors] == [AuthenticationError] * 3
    assert len({id(error) for error in errors}) == 3


async def test_deadline_reports_the_newest_state(fake_neon: FakeNeon) -> None:
    branch = FakeBranch(fake_neon, {0.0: "init"}, pending_state="ready")
    with pytest.raises(StateTimeoutError) as caught:
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=20)
    error = caught.value
    assert now() == pytest.approx(20, abs=0.01)
    assert isinstance(error, TimeoutError)
    assert (error.what, error.wanted) == (f"branch {BRANCH} in {PROJECT}", "ready")
    assert (error.state, error.pending_state, error.timeout) == ("init", "ready", 20)
    assert (error.settled, error.pending) == ([], [])
    assert branch.read_at[-1] > 19.5


async def test_deadline_reports_the_last_error(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "init"}, {15.0: http_response(502)})
    with pytest.raises(StateTimeoutError) as caught:
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=20)
    assert isinstance(caught.value.last_error, ServerError)


async def test_deadline_interrupts_a_hanging_request(fake_neon: FakeNeon) -> None:
    fake_neon.fault = lambda _request: hang
    with pytest.raises(StateTimeoutError, match="its state could not be read"):
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=3)
    assert now() == pytest.approx(3, abs=0.01)


async def test_state_is_read_once_more_before_the_deadline(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "init", 9.9: "ready"})
    async with client_of(fake_neon, polling=PollPolicy.constant(100)) as neon:
        await neon.branches.wait_for(PROJECT, BRANCH, timeout=10.0)
    assert now() == pytest.approx(10, abs=0.05)


@pytest.mark.parametrize("ready_at", [0.5, 100.0])
async def test_loop_that_was_blocked_past_the_deadline_reads_again(
    fake_neon: FakeNeon, monkeypatch: pytest.MonkeyPatch, ready_at: float
) -> None:
    FakeBranch(fake_neon, {0.0: "init", ready_at: "ready"})
    wait = asyncio.create_task(fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=1.0))
    await asyncio.sleep(0.3)
    reads = len(fake_neon.received)
    skip_ahead(monkeypatch, 1.2)
    [outcome] = await asyncio.gather(wait, return_exceptions=True)
    assert isinstance(outcome, StateTimeoutError) == (ready_at == 100.0)
    # The first read may have started before.
    assert reads < len(fake_neon.received) <= reads + 2
    assert now() < 2.0


async def test_timeout_of_zero_sends_no_request(fake_neon: FakeNeon) -> None:
    with pytest.raises(StateTimeoutError, match="within 0 s"):
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=0)
    assert fake_neon.received == []


async def test_timeout_none_waits_without_a_deadline(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "init", 5000.0: "ready"})
    async with client_of(fake_neon, polling=PollPolicy.constant(100)) as neon:
        await neon.branches.wait_for(PROJECT, BRANCH, timeout=None)
        assert now() == pytest.approx(5000, abs=101)


async def test_invalid_arguments_are_refused_before_any_request(fake_neon: FakeNeon) -> None:
    branches = fake_neon.client.branches
    with pytest.raises(ValueError, match="state is empty"):
        await branches.wait_for(PROJECT, BRANCH, "")
    with pytest.raises(ValueError, match="timeout is -1"):
        await branches.wait_for(PROJECT, BRANCH, timeout=-1)
    with pytest.raises(ValueError, match="branch_id is ''"):
        await branches.wait_for(PROJECT, "")
    with pytest.raises(ValueError, match=r"endpoint_id is '\.\.'"):
        await fake_neon.client.endpoints.wait_for(PROJECT, "..")
    with pytest.raises(ValueError, match="project_id is 'a/b'"):
        await fake_neon.client.projects.wait_for("a/b")
    assert fake_neon.received == []


async def test_short_budget_delays_reads(fake_neon: FakeNeon) -> None:
    branch = FakeBranch(fake_neon, {0.0: "init", 70.0: "ready"})
    async with client_of(fake_neon, budget=RateBudget(per_minute=6)) as neon:
        await neon.branches.wait_for(PROJECT, BRANCH)
        assert now() < 120
    assert len(branch.read_at) <= 7


async def test_closing_the_client_ends_waits(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "init"}, {10.0: hang})
    async with client_of(fake_neon) as neon:
        reading = asyncio.create_task(neon.branches.wait_for(PROJECT, BRANCH))
        await asyncio.sleep(15)
        waiting = asyncio.create_task(neon.branches.wait_for(PROJECT, BRANCH))
        await asyncio.sleep(0.01)
    for wait in (reading, waiting):
        with pytest.raises(ClientClosedError, match="during a wait for a state"):
            await wait
    with pytest.raises(ClientClosedError, match="create a new NeonClient"):
        await neon.branches.wait_for(PROJECT, BRANCH)


async def test_cancelling_all_waits_stops_the_requests(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "init", 100.0: "ready"})
    wait_for = fake_neon.client.branches.wait_for
    waits = [asyncio.create_task(wait_for(PROJECT, BRANCH)) for _ in range(3)]
    await asyncio.sleep(5)
    await cancel(*waits[1:])
    assert waits[1].cancelled()
    await asyncio.sleep(5)
    assert not waits[0].done()
    await cancel(waits[0])
    requests = len(fake_neon.received)
    await asyncio.sleep(100)
    assert len(fake_neon.received) == requests


async def test_wait_is_reported_to_hooks(fake_neon: FakeNeon) -> None:
    recorder = EventRecorder()
    FakeBranch(fake_neon, {0.0: "init"})
    async with client_of(fake_neon, hooks=[recorder.hooks]) as neon:
        with pytest.raises(StateTimeoutError) as caught:
            await neon.branches.wait_for(PROJECT, BRANCH, timeout=10)
    [started], [ended] = recorder.of(WaitStarted), recorder.of(WaitEnded)
    assert started.goal == f"branch {BRANCH} in {PROJECT} is ready"
    assert (started.operations, started.timeout) == ((), 10)
    assert ended.wait is started
    assert (ended.unsuccessful, ended.pending, ended.error) == (0, 0, caught.value)
    assert ended.seconds == pytest.approx(10, abs=0.1)
