"""When the shared poller looks, and at what."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest

from neonctl_async import (
    Operation,
    OperationStatus,
    PollPolicy,
    WaitTimeoutError,
)
from tests.support.clock import now
from tests.support.platform import Fault, Platform
from tests.support.records import client_of, operation, ref
from tests.support.server import Received, Respond, hang, http_response, in_turn

pytestmark = pytest.mark.virtual_time


def timed(platform: Platform, fault: Fault = lambda _request: None) -> list[tuple[float, str]]:
    """When each request arrives from now on, and the last segment of its path."""
    arrivals: list[tuple[float, str]] = []

    def noting(request: Received) -> Respond | None:
        arrivals.append((round(now(), 3), request.path.rpartition("/")[2]))
        return fault(request)

    platform.fault = noting
    return arrivals


def stuck_hangs(request: Received) -> Respond | None:
    """A look by id at the operation ``stuck`` is never answered."""
    return hang if request.path.endswith("/stuck") else None


def after(seconds: float, say: Callable[[], Respond]) -> Respond:
    """What ``say`` says then."""

    async def respond(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await say()(writer)

    return respond


def slow(platform: Platform, seconds: float, *listed: str) -> Fault:
    """The truth, so much later; pages hold the operations ``listed``."""

    def truth(request: Received) -> Respond:
        id = request.path.rpartition("/")[2]
        if id == "operations":
            return http_response(content={"operations": [platform.record(one) for one in listed]})
        return http_response(content={"operation": platform.record(id)})

    return lambda request: after(seconds, lambda: truth(request))


async def test_a_poll_that_fails_is_followed_by_the_next_of_the_cadence() -> None:
    platform = Platform()
    arrivals = timed(platform, lambda _request: http_response(503))
    polls = PollPolicy.constant(5.0)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        with pytest.raises(WaitTimeoutError):
            await neon.operations.wait(ref("a"), timeout=18)
    assert arrivals == [(0, "a"), (5, "a"), (10, "a"), (15, "a"), (17.95, "a")]


async def test_those_missing_from_a_page_are_asked_for_at_the_same_time() -> None:
    platform = Platform()
    ids = ["a", "b", "c", "d", "e"]
    for id in ids:
        platform.start(id, ends=0)
    arrivals = timed(platform, slow(platform, 1.0))
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait([ref(id) for id in ids])
        assert now() == pytest.approx(2)
    assert arrivals[0] == (0, "operations")
    assert sorted(arrivals[1:]) == [(1, id) for id in ids]


@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
async def test_a_failed_look_is_no_reason_to_look_again_at_once(ids: list[str]) -> None:
    platform = Platform()
    for id in ids:
        platform.start(id, ends=1)
    arrivals = timed(platform, lambda _request: http_response(503) if now() < 12 else None)
    polls = PollPolicy.constant(5.0)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        await neon.operations.wait([ref(id) for id in ids])
    looked_at = "a" if ids == ["a"] else "operations"
    assert arrivals == [(at, looked_at) for at in (0, 5, 10, 15)]


async def test_a_new_wait_wakes_a_sleeping_poller() -> None:
    platform = Platform()
    platform.start("old", ends=1500)
    platform.start("new", ends=1)
    polls = PollPolicy.constant(1000)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        old = asyncio.create_task(neon.operations.wait(operation("old"), timeout=2000))
        await asyncio.sleep(10)
        await neon.operations.wait(ref("new"))
        assert now() == pytest.approx(10)
        await old


async def test_what_is_added_during_a_look_is_looked_at_in_its_own_time() -> None:
    platform = Platform()
    platform.start("slow", ends=100)
    platform.start("new", ends=2)
    arrivals = timed(platform, slow(platform, 3.0, "new", "slow"))
    polls = PollPolicy.constant(5.0)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        first = asyncio.create_task(neon.operations.wait(ref("slow")))
        await asyncio.sleep(1)
        await neon.operations.wait(operation("new"))
        first.cancel()
        await asyncio.wait([first])
    assert arrivals == [(0, "slow"), (6, "operations")]


async def test_what_is_added_unseen_during_a_look_is_looked_at_at_once() -> None:
    platform = Platform()
    platform.start("new", ends=0)
    arrivals = timed(platform, stuck_hangs)
    async with platform.server, client_of(platform.server) as neon:
        stuck = asyncio.create_task(neon.operations.wait(ref("stuck")))
        await asyncio.sleep(1)
        await neon.operations.wait(ref("new"))
        stuck.cancel()
        await asyncio.wait([stuck])
    assert arrivals == [(0, "stuck"), (1, "new")]


@pytest.mark.parametrize("old_look", ["finds its end", "fails"])
async def test_an_older_look_ends_no_wait_that_began_after_it(old_look: str) -> None:
    platform = Platform()
    platform.start("other", ends=1000)
    platform.start("a", ends=0)

    def truth() -> Respond:
        return http_response(content={"operation": platform.record("a")})

    polls = in_turn(
        after(3, truth if old_look == "finds its end" else lambda: http_response(404)),
        after(3, truth),
    )
    platform.hidden = {"a"}
    platform.fault = lambda request: polls(request) if request.path.endswith("/a") else None
    async with platform.server, client_of(platform.server) as neon:
        other = asyncio.create_task(neon.operations.wait(ref("other")))
        dropped = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(1)
        dropped.cancel()
        await asyncio.wait([dropped])
        [done] = await neon.operations.wait(ref("a"), timeout=60)
        assert done.status == OperationStatus.FINISHED
        assert now() == pytest.approx(4, abs=0.5)
        other.cancel()
        await asyncio.wait([other])


def later(record: Operation) -> Operation:
    return msgspec.structs.replace(record, updated_at=record.updated_at + timedelta(seconds=5))


@pytest.mark.parametrize("reverse", [False, True])
async def test_of_two_records_of_one_operation_the_newest_counts(reverse: bool) -> None:
    newest = later(operation("a", "finished"))
    given = [operation("a", "running"), newest]
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        done = await neon.operations.wait(given[::-1] if reverse else given)
    assert done == [newest, newest]
    assert platform.server.received == []


@pytest.mark.parametrize("reverse", [False, True])
async def test_of_the_records_that_two_waits_were_given_the_newest_counts(reverse: bool) -> None:
    newest = later(operation("a", "running"))
    given = [operation("a", "scheduling"), newest]
    if reverse:
        given.reverse()
    platform = Platform()
    platform.fault = lambda _request: hang
    async with platform.server, client_of(platform.server) as neon:
        waits = [asyncio.create_task(neon.operations.wait(one, timeout=1)) for one in given]
        await asyncio.wait(waits)
    for wait in waits:
        error = wait.exception()
        assert isinstance(error, WaitTimeoutError)
        assert error.pending == [newest]


@pytest.mark.parametrize(("chance", "interval"), [(0.0, 0.5), (0.5, 1.0), (1.0, 1.5)])
async def test_the_jitter_is_drawn_anew_for_each_look(
    chance: float, interval: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.random", lambda: chance)
    platform = Platform()
    platform.start("a", ends=3 * interval)
    arrivals = timed(platform)
    polls = PollPolicy(initial=1, growth=1, maximum=10, jitter=0.5)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        await neon.operations.wait(operation("a"))
    assert [at for at, _ in arrivals] == [interval, 2 * interval, 3 * interval]


@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
async def test_the_last_look_comes_early_enough_to_be_answered(ids: list[str]) -> None:
    platform = Platform()
    for id in ids:
        platform.start(id, ends=5)
    platform.fault = slow(platform, 1.0, *ids)
    polls = PollPolicy.constant(100)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        done = await neon.operations.wait([ref(id) for id in ids], timeout=20)
    assert {one.status for one in done} == {"finished"}
    assert len(platform.server.received) == 2


async def test_what_is_added_unseen_while_looks_are_held_off_is_looked_at_after_that() -> None:
    platform = Platform()
    for id in ("a", "b", "c"):
        platform.start(id, ends=4)

    def fault(_request: Received) -> Respond | None:
        if now() < 0.5:
            return after(3, lambda: http_response(content={"operation": platform.record("a")}))
        return http_response(503, headers={"Retry-After": "5"}) if now() < 1.5 else None

    arrivals = timed(platform, fault)
    polls = PollPolicy.constant(100)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        waits: list[asyncio.Task[object]] = []
        for id in ("a", "b", "c"):
            waits.append(asyncio.create_task(neon.operations.wait(ref(id))))
            await asyncio.sleep(1)
        await asyncio.gather(*waits)
    assert arrivals == [(0, "a"), (1, "b"), (6, "operations")]


async def test_a_last_look_is_taken_though_the_first_would_come_after_the_deadline() -> None:
    platform = Platform()
    platform.start("a", ends=5)
    arrivals = timed(platform)
    polls = PollPolicy.constant(100)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        await neon.operations.wait(operation("a"), timeout=20)
    assert arrivals == [(19.95, "a")]


async def test_deadlines_close_together_share_their_last_looks() -> None:
    platform = Platform()
    platform.start("a", ends=1000)
    arrivals = timed(platform)
    polls = PollPolicy.constant(100)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        waits = [
            asyncio.create_task(neon.operations.wait(operation("a"), timeout=20 + n / 200))
            for n in range(200)
        ]
        await asyncio.wait(waits)
    assert 15 <= len(arrivals) <= 21


async def test_a_look_by_id_that_hangs_holds_up_none_that_the_page_told_of() -> None:
    platform = Platform()
    platform.start("a", ends=2)
    platform.start("stuck", ends=1000)
    platform.hidden = {"stuck"}
    platform.fault = stuck_hangs
    polls = PollPolicy.constant(1)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        waits = [asyncio.create_task(neon.operations.wait(ref(id))) for id in ("a", "stuck")]
        await waits[0]
        assert now() == pytest.approx(2, abs=0.1)
        waits[1].cancel()
        await asyncio.wait(waits)


async def test_a_look_that_hangs_hurries_no_other_up() -> None:
    platform = Platform()
    platform.start("old", ends=1000)
    platform.start("stuck", ends=1000)
    platform.hidden = {"stuck"}
    arrivals = timed(platform, stuck_hangs)
    async with platform.server, client_of(platform.server) as neon:
        old = asyncio.create_task(neon.operations.wait(operation("old"), timeout=None))
        await asyncio.sleep(60)
        stuck = asyncio.create_task(neon.operations.wait(ref("stuck"), timeout=None))
        await asyncio.sleep(9)
        assert sum(at > 60.5 for at, _ in arrivals) <= 3
        for wait in (old, stuck):
            wait.cancel()
        await asyncio.wait([old, stuck])


async def test_looks_of_a_long_wait_are_still_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", lambda: 0.0)
    platform = Platform()
    platform.start("a", ends=100)
    arrivals = timed(platform)
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(operation("a"))
    gaps = [second - first for (first, _), (second, _) in pairwise(arrivals)]
    assert gaps[-5:] == pytest.approx([4.5] * 5, abs=0.01)


async def test_those_never_seen_that_come_one_after_another_share_looks() -> None:
    platform = Platform()
    arrivals = timed(platform)
    async with platform.server, client_of(platform.server) as neon:
        waits: list[asyncio.Task[object]] = []
        for number in range(100):
            platform.start(f"op-{number}", ends=10)
            waits.append(asyncio.create_task(neon.operations.wait(ref(f"op-{number}"))))
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.06)
        assert 4 <= len(arrivals) <= 7
        await asyncio.gather(*waits)
