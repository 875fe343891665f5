import asyncio
from contextlib import aclosing

import pytest

from neonctl_async import NotFoundError, PollPolicy
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import client_of, ref
from tests.support.server import Received, Respond, http_response

pytestmark = pytest.mark.virtual_time


async def test_slow_consumer_gets_changes_in_order_of_arrival(fake_neon: FakeNeon) -> None:
    for id, finished_at in {"a": 6, "first": 0, "c": 4, "b": 2}.items():
        fake_neon.start(id, ends=finished_at)
    refs = [ref(id) for id in ("a", "b", "c", "first")]
    seen: list[str] = []
    async with client_of(fake_neon, polling=PollPolicy.constant(1)) as neon:
        async for record in neon.operations.as_completed(refs):
            seen.append(record.id)
            await asyncio.sleep(10)
    assert seen == ["first", "b", "c", "a"]


async def test_newer_change_moves_an_operation_to_the_end_of_the_queue(fake_neon: FakeNeon) -> None:
    fake_neon.start("first", ends=0)
    fake_neon.start("a", states={0: "scheduling", 2: "running", 6: "finished"})
    fake_neon.start("b", states={0: "scheduling", 4: "finished"})
    seen: list[tuple[str, str]] = []
    async with client_of(fake_neon, polling=PollPolicy.constant(1)) as neon:
        async for record in neon.operations.watch([ref(id) for id in ("a", "b", "first")]):
            seen.append((record.id, record.status))
            if record.id == "first":
                await asyncio.sleep(10)
    assert seen[-2:] == [("b", "finished"), ("a", "finished")]


async def test_queued_changes_come_before_the_first_failure(fake_neon: FakeNeon) -> None:
    fake_neon.start("first", ends=0)
    fake_neon.start("a", ends=2)
    for id in ("gone", "forbidden"):
        fake_neon.start(id, ends=1000)
    fake_neon.hidden = {"gone", "forbidden"}

    def fault(request: Received) -> Respond | None:
        if request.path.endswith("/gone") and now() > 3:
            return http_response(404)
        return http_response(403) if request.path.endswith("/forbidden") and now() > 9 else None

    fake_neon.fault = fault
    refs = [ref(id) for id in ("forbidden", "gone", "a", "first")]
    seen: list[str] = []
    async with client_of(fake_neon, polling=PollPolicy.constant(1)) as neon:
        async with aclosing(neon.operations.as_completed(refs)) as completed:
            with pytest.raises(NotFoundError):
                async for record in completed:
                    seen.append(record.id)
                    if record.id == "first":
                        await asyncio.sleep(10)
    assert seen == ["first", "a"]
