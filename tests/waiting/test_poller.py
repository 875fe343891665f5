"""When the shared poller looks, at what, and what it leaves behind."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from itertools import pairwise

import anyio
import msgspec
import pytest

from neonctl_async import (
    NeonClient,
    NotFoundError,
    Operation,
    OperationStatus,
    PollPolicy,
    RateBudget,
    WaitTimeoutError,
)
from tests.support.platform import Fault, Platform
from tests.support.records import API_KEY, client_of, operation, ref
from tests.support.server import Received, Respond, answer, hang, in_turn
from tests.support.virtual_time import now

pytestmark = pytest.mark.virtual_time


def polling() -> list[asyncio.Task[object]]:
    """The pollers' tasks that have not ended."""
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("poll ")]


def timed(platform: Platform, fault: Fault = lambda _request: None) -> list[tuple[float, str]]:
    """When each request arrives from now on, and the last segment of its path."""
    arrivals: list[tuple[float, str]] = []

    def noting(request: Received) -> Respond | None:
        arrivals.append((round(now(), 3), request.path.rpartition("/")[2]))
        return fault(request)

    platform.fault = noting
    return arrivals


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
            return answer(content={"operations": [platform.record(one) for one in listed]})
        return answer(content={"operation": platform.record(id)})

    return lambda request: after(seconds, lambda: truth(request))


async def test_a_poll_that_fails_is_followed_by_the_next_of_the_cadence() -> None:
    platform = Platform()
    arrivals = timed(platform, lambda _request: answer(503))
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
    arrivals = timed(platform, lambda _request: answer(503) if now() < 12 else None)
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
    fault: Fault = lambda request: hang if request.path.endswith("/stuck") else None  # noqa: E731 - a def says no more
    arrivals = timed(platform, fault)
    async with platform.server, client_of(platform.server) as neon:
        stuck = asyncio.create_task(neon.operations.wait(ref("stuck")))
        await asyncio.sleep(1)
        await neon.operations.wait(ref("new"))
        stuck.cancel()
        await asyncio.wait([stuck])
    assert arrivals == [(0, "stuck"), (1, "new")]


@asynccontextmanager
async def silent_server() -> AsyncGenerator[tuple[str, asyncio.Event, asyncio.Event]]:
    """Its URL, whether it was asked anything, and whether the connection was closed on it."""
    asked, dropped = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        dropped.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked, dropped


async def test_the_last_wait_to_go_drops_the_look_under_way() -> None:
    async with (
        silent_server() as (url, asked, dropped),
        NeonClient(API_KEY, base_url=url, budget=RateBudget.unlimited()) as neon,
    ):
        waits = [asyncio.create_task(neon.operations.wait(ref("a"))) for _ in range(2)]
        await asked.wait()
        waits[0].cancel()
        await asyncio.sleep(1)
        assert not dropped.is_set()
        assert len(polling()) == 1
        waits[1].cancel()
        await asyncio.wait(waits)
        assert polling() == []
        await dropped.wait()
        assert now() == pytest.approx(1, abs=0.01)


async def test_a_wait_that_returns_has_seen_its_poller_off() -> None:
    platform = Platform()
    platform.start("a", ends=1)
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(ref("a"))
        assert polling() == []


@pytest.mark.parametrize("end", ["task.cancel", "asyncio.timeout", "anyio", "deadline", "404"])
async def test_a_wait_that_raises_has_seen_its_poller_off(end: str) -> None:
    platform = Platform()
    platform.fault = lambda _request: answer(404) if end == "404" else hang
    left: list[asyncio.Task[object]] | None = None

    async with platform.server, client_of(platform.server) as neon:

        async def wait() -> None:
            nonlocal left
            try:
                await neon.operations.wait(ref("a"), timeout=1 if end == "deadline" else 300)
            finally:
                left = polling()

        match end:
            case "task.cancel":
                task = asyncio.create_task(wait())
                await asyncio.sleep(1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            case "asyncio.timeout":
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(1):
                        await wait()
            case "anyio":
                with anyio.move_on_after(1):
                    await wait()
            case "deadline":
                with pytest.raises(WaitTimeoutError):
                    await wait()
            case _:
                with pytest.raises(NotFoundError):
                    await wait()
        assert left == []
        assert now() <= 1.01


@pytest.mark.parametrize("old_look", ["finds its end", "fails"])
async def test_an_older_look_ends_no_wait_that_began_after_it(old_look: str) -> None:
    platform = Platform()
    platform.start("other", ends=1000)
    platform.start("a", ends=0)

    def truth() -> Respond:
        return answer(content={"operation": platform.record("a")})

    looks = in_turn(
        after(3, truth if old_look == "finds its end" else lambda: answer(404)), after(3, truth)
    )
    platform.hidden = {"a"}
    platform.fault = lambda request: looks(request) if request.path.endswith("/a") else None
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


async def test_a_slow_consumer_gets_changes_in_the_order_of_their_arrival() -> None:
    platform = Platform()
    for id, ends in {"a": 6, "first": 0, "c": 4, "b": 2}.items():
        platform.start(id, ends=ends)
    polls = PollPolicy.constant(1)
    refs = [ref(id) for id in ("a", "b", "c", "first")]
    seen: list[str] = []
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        async for one in neon.operations.as_completed(refs):
            seen.append(one.id)
            await asyncio.sleep(10)
    assert seen == ["first", "b", "c", "a"]


async def test_a_change_of_what_was_not_taken_yet_comes_in_its_own_turn() -> None:
    platform = Platform()
    platform.start("first", ends=0)
    platform.start("a", states={0: "scheduling", 2: "running", 6: "finished"})
    platform.start("b", states={0: "scheduling", 4: "finished"})
    polls = PollPolicy.constant(1)
    seen: list[tuple[str, str]] = []
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        async for one in neon.operations.watch([ref(id) for id in ("a", "b", "first")]):
            seen.append((one.id, one.status))
            if one.id == "first":
                await asyncio.sleep(10)
    assert seen[-2:] == [("b", "finished"), ("a", "finished")]


async def test_changes_come_before_the_failure_and_the_first_failure_wins() -> None:
    platform = Platform()
    platform.start("first", ends=0)
    platform.start("a", ends=2)
    for id in ("gone", "forbidden"):
        platform.start(id, ends=1000)
    platform.hidden = {"gone", "forbidden"}

    def fault(request: Received) -> Respond | None:
        if request.path.endswith("/gone") and now() > 3:
            return answer(404)
        return answer(403) if request.path.endswith("/forbidden") and now() > 5 else None

    platform.fault = fault
    polls = PollPolicy.constant(1)
    refs = [ref(id) for id in ("forbidden", "gone", "a", "first")]
    seen: list[str] = []
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        async with aclosing(neon.operations.as_completed(refs)) as completed:
            with pytest.raises(NotFoundError):
                async for one in completed:
                    seen.append(one.id)
                    if one.id == "first":
                        await asyncio.sleep(10)
    assert seen == ["first", "a"]


async def test_what_is_added_unseen_while_looks_are_held_off_is_looked_at_after_that() -> None:
    platform = Platform()
    for id in ("a", "b", "c"):
        platform.start(id, ends=4)

    def fault(_request: Received) -> Respond | None:
        if now() < 0.5:
            return after(3, lambda: answer(content={"operation": platform.record("a")}))
        return answer(503, headers={"Retry-After": "5"}) if now() < 1.5 else None

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
    platform.fault = lambda request: hang if request.path.endswith("/stuck") else None
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
    arrivals = timed(platform, lambda request: hang if request.path.endswith("/stuck") else None)
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
