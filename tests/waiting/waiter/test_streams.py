"""The records that ``operations.as_completed`` and ``operations.watch`` yield."""

import asyncio
from contextlib import aclosing

import pytest
from msgspec import convert

from neonctl_async import NotFoundError, Operation, WaitTimeoutError
from neonctl_async.waiting.targets import Target
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import client_of, operation, operation_json, ref
from tests.support.server import http_response

pytestmark = pytest.mark.virtual_time


async def test_as_completed_yields_each_operation_once_soonest_first() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("slow", ends=9)
    fake_neon.start("bad", ends=5, status="failed")
    fake_neon.start("quick", ends=1)
    targets: list[Target] = [
        ref("slow"),
        ref("quick"),
        ref("bad"),
        ref("quick"),
        operation("done", "finished"),
    ]
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        finished = [
            (record.id, record.status) async for record in neon.operations.as_completed(targets)
        ]
    assert finished == [
        ("done", "finished"),
        ("quick", "finished"),
        ("bad", "failed"),
        ("slow", "finished"),
    ]


async def test_as_completed_yields_without_waiting_for_the_rest() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("quick", ends=1)
    fake_neon.start("slow", ends=100)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        async with aclosing(neon.operations.as_completed([ref("slow"), ref("quick")])) as finished:
            assert (await anext(finished)).id == "quick"
            assert now() < 3


async def test_watch_yields_every_change_until_all_operations_are_finished() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", states={0: "scheduling", 1: "running", 4: "finished"})
    fake_neon.start("b", states={0: "scheduling", 6: "failed"})
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        targets: list[Target] = [operation("a", "scheduling"), ref("b")]
        seen = [(record.id, record.status) async for record in neon.operations.watch(targets)]
    assert [status for id, status in seen if id == "a"] == ["scheduling", "running", "finished"]
    assert [status for id, status in seen if id == "b"] == ["scheduling", "failed"]


async def test_slow_consumer_gets_the_newest_record_and_delays_no_other_wait() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", states={0: "scheduling", 2: "running", 4: "cancelling", 6: "finished"})
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        other = asyncio.create_task(neon.operations.wait(ref("a")))
        seen: list[str] = []
        async for record in neon.operations.watch(ref("a")):
            seen.append(record.status)
            await asyncio.sleep(10)
        assert seen == ["scheduling", "finished"]
        assert other.done()
        await other


@pytest.mark.parametrize("stream", ["as_completed", "watch"])
async def test_streams_raise_at_their_deadline(stream: str) -> None:
    fake_neon = FakeNeon()
    fake_neon.start("quick", ends=1)
    fake_neon.start("slow", ends=100)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        iterate = getattr(neon.operations, stream)([ref("quick"), ref("slow")], timeout=10)
        with pytest.raises(WaitTimeoutError) as caught:
            async for _ in iterate:
                pass
        assert now() == pytest.approx(10, abs=0.01)
    assert [record.id for record in caught.value.settled] == ["quick"]
    assert [record.id for record in caught.value.pending] == ["slow"]
    assert caught.value.last_error is None


async def test_records_come_before_the_error_that_ends_the_stream() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=5)
    fake_neon.fault = lambda _request: http_response(404) if now() > 3 else None
    seen: list[str] = []
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        with pytest.raises(NotFoundError):
            async for record in neon.operations.watch([operation("a"), operation("b", "finished")]):
                seen += [record.id]
    assert sorted(seen) == ["a", "b"]


@pytest.mark.parametrize("stream", ["as_completed", "watch"])
async def test_leaving_a_stream_early_stops_its_polls(stream: str) -> None:
    fake_neon = FakeNeon()
    fake_neon.start("quick", ends=1)
    fake_neon.start("slow", ends=1000)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        async for _ in getattr(neon.operations, stream)([ref("quick"), ref("slow")]):
            break
        await asyncio.sleep(1)
        polls = len(fake_neon.server.received)
        await asyncio.sleep(100)
    assert len(fake_neon.server.received) == polls


async def test_later_watch_starts_with_the_newest_known_record() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", states={0: "scheduling", 1: "running", 20: "finished"})
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        first = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(5)
        for target in (ref("a"), operation("a", "scheduling")):
            async with aclosing(neon.operations.watch(target)) as seen:
                assert (await anext(seen)).status == "running"
        await first


async def test_newer_record_of_one_wait_is_delivered_to_the_others() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=20)
    newer = convert(operation_json("a", "cancelling", at=3), Operation)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        async with aclosing(neon.operations.watch(ref("a"))) as seen:
            assert (await anext(seen)).status == "running"
            second = asyncio.create_task(neon.operations.wait(newer))
            assert (await anext(seen)).status == "cancelling"
            assert now() < 0.5
        await second


async def test_each_watch_yields_the_first_record() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=5)
    seen: dict[str, list[str]] = {"by reference": [], "by record": []}
    async with fake_neon.server, client_of(fake_neon.server) as neon:

        async def follow(name: str, target: Target) -> None:
            async for record in neon.operations.watch(target):
                seen[name].append(record.status)

        await asyncio.gather(follow("by reference", ref("a")), follow("by record", operation("a")))
    assert set(map(tuple, seen.values())) == {("running", "finished")}


async def test_as_completed_yields_soonest_first_to_a_slow_consumer() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("b", states={0: "scheduling", 1: "running", 2: "finished"})
    fake_neon.start("a", states={0: "scheduling", 1: "running", 6: "finished"})
    order: list[str] = []
    targets: list[Target] = [ref("a"), ref("b"), operation("done", "finished")]
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        async for record in neon.operations.as_completed(targets):
            order.append(record.id)
            await asyncio.sleep(12)
    assert order == ["done", "b", "a"]


async def test_slow_consumer_of_watch_gets_the_timeout_after_the_deadline() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", states={float(second): f"state-{second}" for second in range(200)})
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        with pytest.raises(WaitTimeoutError) as caught:
            async for _ in neon.operations.watch(ref("a"), timeout=10):
                await asyncio.sleep(4)
        assert now() < 17
    assert isinstance(caught.value.pending[0], Operation)


async def test_operation_finished_in_time_is_yielded_after_the_deadline() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=2)
    fake_neon.start("b", ends=3)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        finished: list[str] = []
        async for record in neon.operations.as_completed([ref("a"), ref("b")], timeout=10):
            finished.append(record.id)
            await asyncio.sleep(20)
    assert finished == ["a", "b"]


async def test_growing_duration_alone_is_not_a_change() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=3)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        records = [record async for record in neon.operations.watch(ref("a"))]
    assert [(record.status, record.total_duration_ms) for record in records] == [
        ("running", 0),
        ("finished", 3000),
    ]


async def test_second_watch_of_the_same_record_yields_it_first() -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=3)
    async with fake_neon.server, client_of(fake_neon.server) as neon:

        async def watch() -> list[str]:
            return [record.status async for record in neon.operations.watch(operation("a"))]

        for seen in await asyncio.gather(watch(), watch()):
            assert seen == ["running", "finished"]


@pytest.mark.parametrize("ticks", range(8))
async def test_wait_can_start_while_the_last_one_finishes(ticks: int) -> None:
    fake_neon = FakeNeon()
    fake_neon.start("a", ends=1.0)
    fake_neon.start("b", ends=3.0)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        finished: list[Operation] = []
        async for record in neon.operations.as_completed(operation("a")):
            for _ in range(ticks):
                await asyncio.sleep(0)
            finished += [record, *await neon.operations.wait(operation("b"))]
    assert [(record.id, record.status) for record in finished] == [
        ("a", "finished"),
        ("b", "finished"),
    ]
