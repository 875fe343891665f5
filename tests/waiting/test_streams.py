"""Operations.as_completed and Operations.watch against a platform on a virtual clock."""

import asyncio
from contextlib import aclosing

import pytest
from msgspec import convert

from neonctl_async import NotFoundError, Operation, WaitTimeoutError
from neonctl_async.waiting.targets import Target
from tests.support.clock import now
from tests.support.platform import Platform
from tests.support.records import client_of, operation, operation_json, ref
from tests.support.server import http_response

pytestmark = pytest.mark.virtual_time


async def test_as_completed_yields_each_once_soonest_first_failures_included() -> None:
    platform = Platform()
    platform.start("slow", ends=9)
    platform.start("bad", ends=5, status="failed")
    platform.start("quick", ends=1)
    given: list[Target] = [
        ref("slow"),
        ref("quick"),
        ref("bad"),
        ref("quick"),
        operation("done", "finished"),
    ]
    async with platform.server, client_of(platform.server) as neon:
        ended = [(one.id, one.status) async for one in neon.operations.as_completed(given)]
    assert ended == [
        ("done", "finished"),
        ("quick", "finished"),
        ("bad", "failed"),
        ("slow", "finished"),
    ]


async def test_as_completed_yields_what_has_ended_before_the_rest_has() -> None:
    platform = Platform()
    platform.start("quick", ends=1)
    platform.start("slow", ends=100)
    async with platform.server, client_of(platform.server) as neon:
        async with aclosing(neon.operations.as_completed([ref("slow"), ref("quick")])) as ended:
            assert (await anext(ended)).id == "quick"
            assert now() < 3


async def test_watch_yields_every_change_and_ends_when_all_have_ended() -> None:
    platform = Platform()
    platform.start("a", states={0: "scheduling", 1: "running", 4: "finished"})
    platform.start("b", states={0: "scheduling", 6: "failed"})
    async with platform.server, client_of(platform.server) as neon:
        given: list[Target] = [operation("a", "scheduling"), ref("b")]
        seen = [(one.id, one.status) async for one in neon.operations.watch(given)]
    assert [status for id, status in seen if id == "a"] == ["scheduling", "running", "finished"]
    assert [status for id, status in seen if id == "b"] == ["scheduling", "failed"]


async def test_a_slow_consumer_gets_the_newest_state_and_holds_nobody_up() -> None:
    platform = Platform()
    platform.start("a", states={0: "scheduling", 2: "running", 4: "cancelling", 6: "finished"})
    async with platform.server, client_of(platform.server) as neon:
        prompt = asyncio.create_task(neon.operations.wait(ref("a")))
        seen: list[str] = []
        async for one in neon.operations.watch(ref("a")):
            seen.append(one.status)
            await asyncio.sleep(10)
        assert seen == ["scheduling", "finished"]
        assert prompt.done()
        await prompt


@pytest.mark.parametrize("stream", ["as_completed", "watch"])
async def test_streams_raise_at_their_deadline(stream: str) -> None:
    platform = Platform()
    platform.start("quick", ends=1)
    platform.start("slow", ends=100)
    async with platform.server, client_of(platform.server) as neon:
        iterate = getattr(neon.operations, stream)([ref("quick"), ref("slow")], timeout=10)
        with pytest.raises(WaitTimeoutError) as caught:
            async for _ in iterate:
                pass
        assert now() == pytest.approx(10, abs=0.01)
    assert [one.id for one in caught.value.settled] == ["quick"]
    assert [one.id for one in caught.value.pending] == ["slow"]
    assert caught.value.last_error is None


async def test_what_was_seen_comes_before_the_error_that_ended_the_stream() -> None:
    platform = Platform()
    platform.start("a", ends=5)
    platform.fault = lambda _request: http_response(404) if now() > 3 else None
    seen: list[str] = []
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(NotFoundError):
            async for one in neon.operations.watch([operation("a"), operation("b", "finished")]):
                seen += [one.id]
    assert sorted(seen) == ["a", "b"]


@pytest.mark.parametrize("stream", ["as_completed", "watch"])
async def test_leaving_a_stream_early_stops_its_polling(stream: str) -> None:
    platform = Platform()
    platform.start("quick", ends=1)
    platform.start("slow", ends=1000)
    async with platform.server, client_of(platform.server) as neon:
        async for _ in getattr(neon.operations, stream)([ref("quick"), ref("slow")]):
            break
        await asyncio.sleep(1)
        polls = len(platform.server.received)
        await asyncio.sleep(100)
    assert len(platform.server.received) == polls


async def test_a_wait_that_joins_sees_the_newest_state_known() -> None:
    platform = Platform()
    platform.start("a", states={0: "scheduling", 1: "running", 20: "finished"})
    async with platform.server, client_of(platform.server) as neon:
        first = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(5)
        for joins in (ref("a"), operation("a", "scheduling")):
            async with aclosing(neon.operations.watch(joins)) as seen:
                assert (await anext(seen)).status == "running"
        await first


async def test_what_one_wait_brings_the_others_see() -> None:
    platform = Platform()
    platform.start("a", ends=20)
    newer = convert(operation_json("a", "cancelling", at=3), Operation)
    async with platform.server, client_of(platform.server) as neon:
        async with aclosing(neon.operations.watch(ref("a"))) as seen:
            assert (await anext(seen)).status == "running"
            joins = asyncio.create_task(neon.operations.wait(newer))
            assert (await anext(seen)).status == "cancelling"
            assert now() < 0.5
        await joins


async def test_each_wait_sees_the_first_state_whoever_knew_it_first() -> None:
    platform = Platform()
    platform.start("a", ends=5)
    seen: dict[str, list[str]] = {"by reference": [], "by record": []}
    async with platform.server, client_of(platform.server) as neon:

        async def follow(how: str, target: Target) -> None:
            async for one in neon.operations.watch(target):
                seen[how].append(one.status)

        await asyncio.gather(follow("by reference", ref("a")), follow("by record", operation("a")))
    assert set(map(tuple, seen.values())) == {("running", "finished")}


async def test_soonest_first_holds_for_a_slow_consumer_too() -> None:
    platform = Platform()
    platform.start("b", states={0: "scheduling", 1: "running", 2: "finished"})
    platform.start("a", states={0: "scheduling", 1: "running", 6: "finished"})
    order: list[str] = []
    given: list[Target] = [ref("a"), ref("b"), operation("done", "finished")]
    async with platform.server, client_of(platform.server) as neon:
        async for one in neon.operations.as_completed(given):
            order.append(one.id)
            await asyncio.sleep(12)
    assert order == ["done", "b", "a"]


async def test_a_slow_consumer_does_not_outlive_the_deadline() -> None:
    platform = Platform()
    platform.start("a", states={float(t): f"state-{t}" for t in range(200)})
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(WaitTimeoutError) as caught:
            async for _ in neon.operations.watch(ref("a"), timeout=10):
                await asyncio.sleep(4)
        assert now() < 17
    assert isinstance(caught.value.pending[0], Operation)


async def test_what_ended_in_time_is_yielded_after_the_deadline() -> None:
    platform = Platform()
    platform.start("a", ends=2)
    platform.start("b", ends=3)
    async with platform.server, client_of(platform.server) as neon:
        ended: list[str] = []
        async for one in neon.operations.as_completed([ref("a"), ref("b")], timeout=10):
            ended.append(one.id)
            await asyncio.sleep(20)
    assert ended == ["a", "b"]


async def test_a_duration_that_only_grows_is_no_change() -> None:
    platform = Platform()
    platform.start("a", ends=3)
    async with platform.server, client_of(platform.server) as neon:
        records = [one async for one in neon.operations.watch(ref("a"))]
    assert [(one.status, one.total_duration_ms) for one in records] == [
        ("running", 0),
        ("finished", 3000),
    ]


async def test_a_second_watch_of_the_same_record_begins_with_it_too() -> None:
    platform = Platform()
    platform.start("a", ends=3)
    async with platform.server, client_of(platform.server) as neon:

        async def watch() -> list[str]:
            return [one.status async for one in neon.operations.watch(operation("a"))]

        for seen in await asyncio.gather(watch(), watch()):
            assert seen == ["running", "finished"]


@pytest.mark.parametrize("ticks", range(8))
async def test_a_wait_that_begins_as_the_last_one_ends_is_a_wait_like_any(ticks: int) -> None:
    platform = Platform()
    platform.start("a", ends=1.0)
    platform.start("b", ends=3.0)
    async with platform.server, client_of(platform.server) as neon:
        ended: list[Operation] = []
        async for one in neon.operations.as_completed(operation("a")):
            for _ in range(ticks):
                await asyncio.sleep(0)
            ended += [one, *await neon.operations.wait(operation("b"))]
    assert [(one.id, one.status) for one in ended] == [("a", "finished"), ("b", "finished")]
