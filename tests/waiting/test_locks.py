import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from neonctl_async import LockedError, NeonClient, PollPolicy, RateBudget, RetryPolicy
from neonctl_async.local import Durations, LocalControlPlane
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, branch_json, client_of
from tests.support.server import MisbehavingServer, Received, Respond, http_response

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def control_plane() -> AsyncIterator[LocalControlPlane]:
    """A local control plane whose running operations lock their whole project."""
    loop = asyncio.get_running_loop()

    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=loop.time())

    durations = Durations(default=2.0)
    async with LocalControlPlane(durations=durations, clock=clock, lock="project") as control_plane:
        yield control_plane


@pytest.fixture
def longest_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each backoff as long as possible."""

    def maximum(_low: float, high: float) -> float:
        return high

    monkeypatch.setattr("random.uniform", maximum)


def lock(fake_neon: FakeNeon, until: float, **headers: str) -> None:
    """Respond to mutations with 423 until a time of the loop."""

    def fault(request: Received) -> Respond | None:
        if request.method == "GET":
            return None
        if now() < until:
            return http_response(423, {"message": "project is locked"}, headers=headers)
        return http_response(201, {"branch": branch_json(), "operations": []})

    fake_neon.fault = fault


def mutations(fake_neon: FakeNeon) -> int:
    return sum(request.method != "GET" for request in fake_neon.server.received)


@pytest.mark.usefixtures("longest_backoff")
@pytest.mark.parametrize("status", ["running", "failed"])
async def test_locked_call_is_retried_as_soon_as_running_operations_finish(
    status: str,
) -> None:
    fake_neon = FakeNeon()
    retry_at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    fake_neon.start("a", states={0: status, 20: "finished"}, retry_at=retry_at)
    lock(fake_neon, until=20)
    polls, policy = PollPolicy.constant(1), RetryPolicy(initial=5.0)
    async with (
        fake_neon.server,
        client_of(fake_neon.server, polling=polls, retry=policy) as neon,
    ):
        await neon.branches.create(PROJECT)
        assert now() == pytest.approx(20, abs=0.1)
    assert mutations(fake_neon) == 2
    assert fake_neon.pages == [100]


async def test_ten_locked_calls_are_retried_one_after_another(
    control_plane: LocalControlPlane,
) -> None:
    async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
        project = (await neon.projects.create(name="busy", wait=True)).project
        before = control_plane.requests_served
        created = await asyncio.gather(
            *(neon.branches.create(project.id, name=f"b{n}", wait=True) for n in range(10))
        )
        assert now() < 10 * 5
    assert len({response.branch.id for response in created}) == 10
    posts = [request for request in control_plane.requests if request.method == "POST"][1:]
    assert sum(request.status == 201 for request in posts) == 10
    assert sum(request.status == 423 for request in posts) <= 10
    assert control_plane.requests_served - before < 200


async def test_lock_of_one_project_does_not_delay_another() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=30)
    lock(fake_neon, until=30)
    other = "other-project-12345678"
    locked = fake_neon.fault

    def fault(request: Received) -> Respond | None:
        if other in request.path and request.method != "GET":
            return http_response(201, {"branch": branch_json(), "operations": []})
        return locked(request)

    fake_neon.fault = fault
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        locked_call = asyncio.create_task(neon.branches.create(PROJECT))
        await asyncio.sleep(1)
        await neon.branches.create(other)
        assert now() < 1.1
        await locked_call


@pytest.mark.usefixtures("longest_backoff")
async def test_lock_without_operations_is_retried_by_the_retry_policy() -> None:
    fake_neon = FakeNeon()
    lock(fake_neon, until=1e9)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        with pytest.raises(LockedError):
            await neon.branches.create(PROJECT)
        assert now() == pytest.approx(0.25 + 0.5 + 1 + 2, abs=0.1)
    assert mutations(fake_neon) == 5


def stuck_platform() -> FakeNeon:
    """Serve an operation that never finishes, and a lock that is never released."""
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=1e9)
    lock(fake_neon, until=1e9)
    return fake_neon


async def test_retries_stop_at_the_deadline_if_operations_never_finish() -> None:
    fake_neon = stuck_platform()
    policy = RetryPolicy(deadline=30)
    async with fake_neon.server, client_of(fake_neon.server, retry=policy) as neon:
        with pytest.raises(LockedError):
            await neon.branches.create(PROJECT)
        assert now() <= 30
    assert mutations(fake_neon) == 5


async def test_waiting_for_the_retry_slot_stops_at_the_deadline_of_each_call() -> None:
    fake_neon = stuck_platform()
    policy = RetryPolicy(deadline=30)
    async with fake_neon.server, client_of(fake_neon.server, retry=policy) as neon:
        outcomes = await asyncio.gather(
            *(neon.branches.create(PROJECT) for _ in range(5)), return_exceptions=True
        )
        assert now() <= 30.1
    assert [type(outcome) for outcome in outcomes] == [LockedError] * 5


async def test_earlier_call_does_not_wait_for_the_retry_slot_of_a_later_one() -> None:
    def respond(request: Received) -> Respond:
        if request.method == "GET":
            return http_response(content={"operations": []})
        return slow if request.json() == {"branch": {"name": "first"}} else http_response(423)

    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(9)
        await http_response(423)(writer)

    policy = RetryPolicy(attempts=1000, maximum=1, deadline=20)
    async with MisbehavingServer(respond) as server, client_of(server, retry=policy) as neon:
        first = asyncio.create_task(neon.branches.create(PROJECT, name="first"))
        await asyncio.sleep(8)
        later = asyncio.create_task(neon.branches.create(PROJECT, name="later"))
        with pytest.raises(LockedError):
            await first
        assert now() == pytest.approx(20, abs=0.1)
        with pytest.raises(LockedError):
            await later


@pytest.mark.usefixtures("longest_backoff")
async def test_stuck_operation_does_not_block_retries_after_the_lock_is_released() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=1e9)
    lock(fake_neon, until=20)
    policy = RetryPolicy(initial=5.0)
    async with fake_neon.server, client_of(fake_neon.server, retry=policy) as neon:
        await neon.branches.create(PROJECT)
        assert now() == pytest.approx(30, abs=0.1)


async def test_without_retries_no_operation_is_polled() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=5)
    lock(fake_neon, until=5)
    async with fake_neon.server, client_of(fake_neon.server, retry=RetryPolicy.never()) as neon:
        with pytest.raises(LockedError):
            await neon.branches.create(PROJECT)
    assert len(fake_neon.server.received) == 1


async def test_retry_after_of_a_423_is_the_minimum_delay() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=1)
    lock(fake_neon, until=1, **{"Retry-After": "12"})
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        await neon.branches.create(PROJECT)
        assert now() == pytest.approx(12, abs=1)


@pytest.mark.usefixtures("longest_backoff")
async def test_failed_poll_of_running_operations_falls_back_to_backoff() -> None:
    fake_neon = FakeNeon()
    lock(fake_neon, until=0.5)
    locked = fake_neon.fault
    fake_neon.fault = lambda request: (
        http_response(500) if request.method == "GET" else locked(request)
    )
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        await neon.branches.create(PROJECT)
    assert mutations(fake_neon) >= 2


@pytest.mark.usefixtures("longest_backoff")
async def test_slow_failed_poll_of_running_operations_counts_toward_the_delay() -> None:
    def respond(request: Received) -> Respond:
        return slow if request.method == "GET" else http_response(423)

    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(9)
        await http_response(500)(writer)

    policy = RetryPolicy(initial=19, maximum=19, deadline=20)
    async with MisbehavingServer(respond) as server, client_of(server, retry=policy) as neon:
        with pytest.raises(LockedError):
            await neon.branches.create(PROJECT)
        assert now() <= 20


async def test_cancelling_a_locked_call_lets_the_next_one_retry(
    control_plane: LocalControlPlane,
) -> None:
    async with NeonClient(
        control_plane.api_key, base_url=control_plane.base_url, budget=RateBudget.unlimited()
    ) as neon:
        project = (await neon.projects.create(name="busy", wait=True)).project
        await neon.branches.create(project.id, name="first")
        calls = [
            asyncio.create_task(neon.branches.create(project.id, name=f"b{n}")) for n in range(3)
        ]
        await asyncio.sleep(0.5)
        calls[0].cancel()
        await asyncio.wait(calls)
        assert calls[0].cancelled()
        names = {branch.name for branch in await neon.branches.list(project.id).collect()}
    assert names >= {"first", "b1", "b2"}
    assert "b0" not in names


async def test_generic_requests_wait_for_running_operations() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=20)
    lock(fake_neon, until=20)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        await neon.request("POST", f"/projects/{PROJECT}/branch_anonymized")
    assert mutations(fake_neon) == 2
