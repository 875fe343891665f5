import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from neonctl_async import LockedError, NeonClient, PollPolicy, RetryPolicy
from neonctl_local import Durations, LocalControlPlane
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, branch_json, client_of
from tests.support.server import MisbehavingServer, Received, Respond, http_response

pytestmark = pytest.mark.virtual_time
locks_project = pytest.mark.control_plane(durations=Durations(default=2.0), lock="project")
"""Running operations lock their whole project."""
LOGGERS_OF_OTHERS = {"neonctl_async.waiting.project_operations", "neonctl_local.server.application"}
"""The loggers of status changes, and of the requests that the server receives."""


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
    return sum(request.method != "GET" for request in fake_neon.received)


@pytest.mark.fact("client-1")
@pytest.mark.usefixtures("longest_backoff")
@pytest.mark.parametrize("status", ["running", "failed"])
async def test_locked_call_is_retried_as_soon_as_running_operations_finish(
    fake_neon: FakeNeon, status: str
) -> None:
    retry_at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    fake_neon.start("a", states={0: status, 20: "finished"}, retry_at=retry_at)
    lock(fake_neon, until=20)
    polls, policy = PollPolicy.constant(1), RetryPolicy(initial=5.0)
    async with client_of(fake_neon, polling=polls, retry=policy) as neon:
        await neon.branches.create(PROJECT)
        assert now() == pytest.approx(20, abs=0.1)
    assert mutations(fake_neon) == 2
    assert fake_neon.pages == [100]


@pytest.mark.usefixtures("longest_backoff")
async def test_lock_that_follows_another_failure_ends_as_soon_as_operations_finish(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("a", ends=20)
    lock(fake_neon, until=20)
    locked = fake_neon.fault
    assert locked is not None
    fake_neon.fault = lambda request: http_response(503) if now() < 1 else locked(request)
    polls, policy = PollPolicy.constant(1), RetryPolicy(initial=3.0, maximum=3.0)
    async with client_of(fake_neon, polling=polls, retry=policy) as neon:
        await asyncio.gather(*(neon.branches.create(PROJECT, name=f"b{n}") for n in range(5)))
        assert 20 <= now() < 21
    assert mutations(fake_neon) == 5 + 5 + 5


@pytest.mark.usefixtures("longest_backoff")
async def test_call_is_retried_at_once_if_operations_finish_between_its_423_and_the_list(
    fake_neon: FakeNeon,
) -> None:
    """The local control plane holds such a list until they have finished."""
    fake_neon.start("a", ends=0.3)
    lock(fake_neon, until=0.3)
    locked = fake_neon.fault

    def fault(request: Received) -> Respond | None:
        async def held(writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.3)
            await fake_neon.response_to(request)(writer)

        return held if request.method == "GET" else locked(request)

    fake_neon.fault = fault
    async with client_of(fake_neon, retry=RetryPolicy(initial=5.0)) as neon:
        await neon.branches.create(PROJECT)
        assert now() == pytest.approx(0.3, abs=0.1)
    assert mutations(fake_neon) == 2


@locks_project
async def test_ten_locked_calls_are_retried_one_after_another(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
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


@locks_project
async def test_locked_project_is_logged_once_for_all_its_calls(
    neon: NeonClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "neonctl_async")
    [first, second] = [
        (await neon.projects.create(name=name, wait=True)).project.id for name in ("one", "two")
    ]
    for project in (first, second):
        await asyncio.gather(*(neon.branches.create(project, name=f"b{n}") for n in range(4)))
        await neon.branches.create(project, name="last")
    lines = [record for record in caplog.records if record.name not in LOGGERS_OF_OTHERS]
    assert {record.levelname for record in lines} == {"INFO"}
    assert [record.getMessage() for record in lines] == [
        f"project {project} is locked (423): rejected calls wait for its running operations, and "
        "are sent again one at a time"
        for project in (first, second)
    ]


@locks_project
async def test_lock_that_returns_after_a_minute_is_logged_again(
    neon: NeonClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "neonctl_async.waiting.locks")
    project = (await neon.projects.create(name="busy", wait=True)).project.id
    for pause in (0, 30, 31):
        await asyncio.sleep(pause)
        await asyncio.gather(*(neon.branches.create(project, wait=True) for _ in range(2)))
    assert len(caplog.records) == 2


async def test_lock_of_one_project_does_not_delay_another(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=30)
    lock(fake_neon, until=30)
    other = "other-project-12345678"
    locked = fake_neon.fault

    def fault(request: Received) -> Respond | None:
        if other in request.path and request.method != "GET":
            return http_response(201, {"branch": branch_json(), "operations": []})
        return locked(request)

    fake_neon.fault = fault
    locked_call = asyncio.create_task(fake_neon.client.branches.create(PROJECT))
    await asyncio.sleep(1)
    await fake_neon.client.branches.create(other)
    assert now() < 1.1
    await locked_call


@pytest.mark.usefixtures("longest_backoff")
async def test_lock_without_operations_is_retried_by_the_retry_policy(fake_neon: FakeNeon) -> None:
    lock(fake_neon, until=1e9)
    with pytest.raises(LockedError):
        await fake_neon.client.branches.create(PROJECT)
    # At once, because operations may have finished. No jitter: 0.5 s, 1 s, … and then 10 s each.
    assert now() == pytest.approx(0.5 * (2**5 - 1) + 7 * 10, abs=0.1)
    assert mutations(fake_neon) == 14


def lock_forever(fake_neon: FakeNeon) -> None:
    """Serve an operation that never finishes, and a lock that is never released."""
    fake_neon.start("a", ends=1e9)
    lock(fake_neon, until=1e9)


@pytest.mark.usefixtures("longest_backoff")
async def test_retries_stop_at_the_deadline_if_operations_never_finish(fake_neon: FakeNeon) -> None:
    lock_forever(fake_neon)
    async with client_of(fake_neon, retry=RetryPolicy(deadline=30)) as neon:
        with pytest.raises(LockedError):
            await neon.branches.create(PROJECT)
        assert now() <= 30
    assert mutations(fake_neon) == 5


async def test_wait_for_the_retry_turn_stops_at_the_deadline(fake_neon: FakeNeon) -> None:
    lock_forever(fake_neon)
    async with client_of(fake_neon, retry=RetryPolicy(deadline=30)) as neon:
        outcomes = await asyncio.gather(
            *(neon.branches.create(PROJECT) for _ in range(5)), return_exceptions=True
        )
        assert now() <= 30.1
    assert [type(outcome) for outcome in outcomes] == [LockedError] * 5


async def test_earlier_call_does_not_wait_for_the_retry_turn_of_a_later_one() -> None:
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
async def test_released_lock_is_retried_despite_a_stuck_operation(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1e9)
    lock(fake_neon, until=20)
    async with client_of(fake_neon, retry=RetryPolicy(initial=5.0, deadline=60.0)) as neon:
        await neon.branches.create(PROJECT)
        assert now() == pytest.approx(30, abs=0.1)


async def test_without_retries_no_operation_is_polled(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=5)
    lock(fake_neon, until=5)
    async with client_of(fake_neon, retry=RetryPolicy.never()) as neon:
        with pytest.raises(LockedError):
            await neon.branches.create(PROJECT)
    assert len(fake_neon.received) == 1


async def test_retry_after_of_a_423_is_the_minimum_delay(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1)
    lock(fake_neon, until=1, **{"Retry-After": "12"})
    await fake_neon.client.branches.create(PROJECT)
    assert now() == pytest.approx(12, abs=1)


@pytest.mark.usefixtures("longest_backoff")
async def test_failed_poll_of_running_operations_falls_back_to_backoff(fake_neon: FakeNeon) -> None:
    lock(fake_neon, until=0.5)
    locked = fake_neon.fault
    fake_neon.fault = lambda request: (
        http_response(500) if request.method == "GET" else locked(request)
    )
    await fake_neon.client.branches.create(PROJECT)
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


@locks_project
async def test_cancelling_a_locked_call_lets_the_next_one_retry(neon: NeonClient) -> None:
    project = (await neon.projects.create(name="busy", wait=True)).project
    await neon.branches.create(project.id, name="first")
    calls = [asyncio.create_task(neon.branches.create(project.id, name=f"b{n}")) for n in range(3)]
    await asyncio.sleep(0.5)
    calls[0].cancel()
    await asyncio.wait(calls)
    assert calls[0].cancelled()
    names = {branch.name for branch in await neon.branches.list(project.id).collect()}
    assert names >= {"first", "b1", "b2"}
    assert "b0" not in names


async def test_generic_requests_wait_for_running_operations(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=20)
    lock(fake_neon, until=20)
    await fake_neon.client.request("POST", f"/projects/{PROJECT}/branch_anonymized")
    assert mutations(fake_neon) == 2
