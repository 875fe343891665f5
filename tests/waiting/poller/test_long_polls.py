"""Polls of a server that announces long polls, honestly or not."""

import asyncio
from collections.abc import Callable

import pytest

from neonctl_async import (
    ClientClosedError,
    NeonClient,
    OperationRef,
    PollPolicy,
    RateBudget,
    Timeout,
)
from neonctl_local import Durations
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import client_of, ref
from tests.support.server import Received, Respond, hang, http_response

pytestmark = pytest.mark.virtual_time

END = 3.0
"""The end of the operation of most tests."""


class Announcing:
    """A server that announces long polls, and what it receives.

    ``delay`` returns for how long the response to a long poll is delayed, from the time of the
    request. By default, the server keeps what it announces.
    """

    def __init__(
        self,
        fake_neon: FakeNeon,
        announcement: str = "wait=5",
        delay: Callable[[float], float] = lambda seconds: min(max(END - now(), 0.0), seconds),
    ) -> None:
        self.arrivals: list[float] = []
        self.requested: list[float] = []
        """The time for which each response may be delayed; 0 for an ordinary poll."""
        self.most_in_flight = 0
        self._in_flight = 0
        self._fake_neon = fake_neon
        self._delay = delay
        fake_neon.headers = {"Accept-Prefer": announcement}
        fake_neon.fault = self.respond

    @property
    def long_polls(self) -> int:
        return sum(seconds > 0 for seconds in self.requested)

    def respond(self, request: Received) -> Respond:
        seconds = float(request.headers.get("prefer", "wait=0").removeprefix("wait="))
        self.arrivals.append(round(now(), 3))
        self.requested.append(seconds)

        async def respond(writer: asyncio.StreamWriter) -> None:
            if seconds:
                self._in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self._in_flight)
                await asyncio.sleep(self._delay(seconds))
                self._in_flight -= 1
            await self._fake_neon.response_to(request)(writer)

        return respond


STEADY = PollPolicy(jitter=0.0)


def start(fake_neon: FakeNeon, seconds: float) -> None:
    """Start an operation that finishes after some seconds."""
    fake_neon.start("a", states={now(): "running", now() + seconds: "finished"})


async def arrivals_without(end: float) -> list[float]:
    """Return when polls arrive at a server that announces nothing."""
    async with FakeNeon() as fake_neon:
        server = Announcing(fake_neon)
        fake_neon.headers = {}
        start(fake_neon, end)
        started = now()
        async with client_of(fake_neon, polling=STEADY) as neon:
            await neon.operations.wait(ref("a"))
        assert not server.long_polls
        return [round(at - started, 3) for at in server.arrivals]


async def test_wait_returns_when_its_operation_finishes(fake_neon: FakeNeon) -> None:
    server = Announcing(fake_neon)
    fake_neon.start("a", ends=END)
    await fake_neon.client.operations.wait(ref("a"))
    assert now() == pytest.approx(END, abs=0.001)
    assert server.requested[0] == 0  # nothing is known about the server yet


async def test_wait_on_several_operations_returns_when_the_last_one_finishes(
    fake_neon: FakeNeon,
) -> None:
    Announcing(fake_neon)
    for number in range(20):
        fake_neon.start(str(number), ends=END * (number + 1) / 20)
    await fake_neon.client.operations.wait([ref(str(number)) for number in range(20)])
    assert now() == pytest.approx(END, abs=0.001)


@pytest.mark.parametrize("part", [0.0, 0.5, 0.89])
async def test_server_that_responds_too_early_gets_one_long_poll(
    fake_neon: FakeNeon, part: float
) -> None:
    expected = await arrivals_without(END)
    server = Announcing(fake_neon, delay=lambda seconds: part * seconds)
    start(fake_neon, END)
    async with client_of(fake_neon, polling=STEADY) as neon:
        await neon.operations.wait(ref("a"))
    assert server.long_polls == 1
    assert len(server.arrivals) <= len(expected) + 1


async def test_unchanged_operation_costs_no_more_polls_than_without_long_polls(
    fake_neon: FakeNeon,
) -> None:
    expected = await arrivals_without(100.0)
    server = Announcing(fake_neon, delay=lambda seconds: seconds)
    start(fake_neon, 100.0)
    async with client_of(fake_neon, polling=STEADY) as neon:
        await neon.operations.wait(ref("a"))
    assert len(server.arrivals) <= len(expected)
    assert max(server.requested) <= 5.0


@pytest.mark.parametrize(
    "announcement",
    [
        *("", "wait", "wait=", "wait=0", "wait=-1", "wait=nan", "wait=inf", "wait=1e3", "wait=0x5"),
        *("wait=Thu, 26 Nov 2026 08:00:00 GMT", "wait=99999999999", "respond-async", "5"),
    ],
)
async def test_invalid_announcement_changes_no_poll(fake_neon: FakeNeon, announcement: str) -> None:
    expected = await arrivals_without(END)
    server = Announcing(fake_neon, announcement)
    started = now()
    start(fake_neon, END)
    async with client_of(fake_neon, polling=STEADY) as neon:
        await neon.operations.wait(ref("a"))
    assert [at - started for at in server.arrivals] == pytest.approx(expected, abs=0.002)


@pytest.mark.parametrize(("announced", "longest"), [("wait=999999999", 2.0), ("wait=0.01", 0.01)])
async def test_response_is_delayed_for_no_longer_than_the_timeout_and_the_server_allow(
    fake_neon: FakeNeon, announced: str, longest: float
) -> None:
    server = Announcing(fake_neon, announced, delay=lambda seconds: seconds)
    fake_neon.start("a", ends=60.0)
    async with client_of(fake_neon, timeout=Timeout(read=4.0)) as neon:
        await neon.operations.wait(ref("a"))
    assert max(server.requested) == longest


async def test_withdrawn_announcement_ends_long_polls(fake_neon: FakeNeon) -> None:
    server = Announcing(fake_neon, delay=lambda seconds: seconds)
    fake_neon.start("a", ends=END)
    wait = asyncio.create_task(fake_neon.client.operations.wait(ref("a")))
    await asyncio.sleep(0.3)
    fake_neon.headers = {}
    await wait
    assert server.requested[-1] == 0


async def test_response_that_never_comes_delays_a_wait_like_any_other(
    fake_neon: FakeNeon,
) -> None:
    server = Announcing(fake_neon)
    announced = server.respond
    fake_neon.fault = lambda one: hang if "prefer" in one.headers else announced(one)
    fake_neon.start("a", ends=END)
    await fake_neon.client.operations.wait(ref("a"))
    assert now() < 13  # the timeout of a poll is 10 s, and the next one comes at its usual delay


async def test_failed_poll_is_not_repeated_earlier(fake_neon: FakeNeon) -> None:
    server = Announcing(fake_neon, delay=lambda seconds: seconds)
    fake_neon.start("a", ends=20.0)
    respond = server.respond

    def fail(request: Received) -> Respond:
        respond(request)
        return http_response(503, {"message": "busy"}, headers=fake_neon.headers)

    wait = asyncio.create_task(fake_neon.client.operations.wait(ref("a")))
    await asyncio.sleep(1.0)
    fake_neon.fault, before = fail, len(server.requested)
    await asyncio.sleep(9.0)
    assert not any(server.requested[before + 1 :])
    fake_neon.fault = respond
    await wait


async def test_failure_is_confirmed_at_its_time(fake_neon: FakeNeon) -> None:
    server = Announcing(fake_neon, delay=lambda seconds: min(max(0.5 - now(), 0.0), seconds))
    fake_neon.start("a", ends=0.5, status="failed")
    await fake_neon.client.operations.wait(ref("a"), raise_on_failure=False)
    assert now() == pytest.approx(1.5, abs=0.01)
    assert len(server.arrivals) <= 4


async def test_timeout_ends_a_wait_during_a_long_poll(fake_neon: FakeNeon) -> None:
    Announcing(fake_neon, delay=lambda seconds: seconds)
    fake_neon.start("a", ends=60.0)
    with pytest.raises(TimeoutError):
        await fake_neon.client.operations.wait(ref("a"), timeout=2.0)
    assert now() == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize(
    ("connections", "route_limit", "most"), [(100, None, 25), (100, 40, 10), (3, 40, 0)]
)
async def test_few_connections_are_used_by_long_polls(
    fake_neon: FakeNeon, connections: int, route_limit: int | None, most: int
) -> None:
    server = Announcing(fake_neon, delay=lambda seconds: seconds)
    projects = [f"late-frost-1234{number:04}" for number in range(30)]
    for project in projects:
        fake_neon.start(project, ends=4.0, project_id=project)
    budget = RateBudget(per_minute=None, per_route_per_second=route_limit)
    async with client_of(fake_neon, budget=budget, max_connections=connections) as neon:
        await neon.operations.wait(
            [OperationRef(project_id=project, id=project) for project in projects]
        )
    assert server.most_in_flight == most


async def test_long_polls_of_many_projects_delay_no_call(fake_neon: FakeNeon) -> None:
    server = Announcing(fake_neon, delay=lambda seconds: seconds)
    projects = [f"late-frost-1234{number // 2:04}" for number in range(60)]
    for number, project in enumerate(projects):
        fake_neon.start(str(number), ends=4.0, project_id=project)
    refs = [OperationRef(project_id=project, id=str(n)) for n, project in enumerate(projects)]
    budget = RateBudget(per_minute=None, per_route_per_second=None)
    async with client_of(fake_neon, budget=budget, max_connections=8) as neon:
        waits = [asyncio.create_task(neon.operations.wait(one)) for one in refs]
        for _ in range(5):
            await asyncio.sleep(0.7)
            started = now()
            await neon.operations.get(refs[0].project_id, refs[0].id)
            assert now() - started < 0.05
        await asyncio.gather(*waits)
    assert server.most_in_flight == 2


async def test_close_of_the_client_ends_a_long_poll(fake_neon: FakeNeon) -> None:
    server = Announcing(fake_neon, delay=lambda seconds: seconds)
    fake_neon.start("a", ends=60.0)
    async with client_of(fake_neon) as neon:
        wait = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(0.3)
        assert server.long_polls
    assert now() == pytest.approx(0.3, abs=0.01)
    with pytest.raises(ClientClosedError):
        await wait


async def test_cancelled_wait_leaves_room_for_another_long_poll(fake_neon: FakeNeon) -> None:
    server = Announcing(fake_neon, delay=lambda seconds: min(max(END - now(), 0.0), seconds))
    fake_neon.start("a", ends=END)
    budget = RateBudget(per_route_per_second=4)  # room for one
    async with client_of(fake_neon, budget=budget, polling=STEADY) as neon:
        wait = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(0.3)
        assert server.long_polls
        wait.cancel()
        await asyncio.gather(wait, return_exceptions=True)
        await neon.operations.wait(ref("a"))
    assert now() == pytest.approx(END, abs=0.001)


async def test_proxy_that_cuts_long_polls_costs_one_of_them(fake_neon: FakeNeon) -> None:
    server = Announcing(fake_neon)
    announced = server.respond
    cut = http_response(504, {"message": "gateway timeout"})

    def respond(request: Received) -> Respond:
        normal = announced(request)
        return cut if "prefer" in request.headers else normal

    fake_neon.fault = respond
    fake_neon.start("a", ends=END)
    await fake_neon.client.operations.wait(ref("a"))
    assert server.long_polls == 1
    assert now() < 2 * END


@pytest.mark.control_plane(durations=Durations(default=0.08))
async def test_creation_returns_when_the_local_control_plane_has_finished(
    neon: NeonClient,
) -> None:
    started = now()
    project = await neon.projects.create(name="shop", wait=True)
    operations = len(project.operations)
    assert now() - started == pytest.approx(0.08 * operations, abs=0.005)
    sent = neon.requests_sent
    started = now()
    await neon.branches.create(project.project.id, wait=True)
    assert now() - started == pytest.approx(0.08, abs=0.005)
    assert neon.requests_sent == sent + 2
