"""The arguments, results and requests of ``operations.wait``."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from neonctl_async import Operation, OperationFailedError, OperationRef, OperationStatus, RateBudget
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import EPOCH, PROJECT, client_of, operation, ref, statuses

pytestmark = pytest.mark.virtual_time


async def test_result_has_the_order_and_duplicates_of_the_argument(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=3)
    fake_neon.start("b", ends=1)
    done = await fake_neon.client.operations.wait([operation("a"), operation("b"), ref("a")])
    assert statuses(done) == [("a", "finished"), ("b", "finished"), ("a", "finished")]


async def test_finished_operations_cost_no_request(fake_neon: FakeNeon) -> None:
    records = [operation("a", "finished"), operation("b", "skipped")]
    assert await fake_neon.client.operations.wait(records) == records
    assert fake_neon.received == []


async def test_failed_operations_raise_without_a_request(fake_neon: FakeNeon) -> None:
    with pytest.raises(OperationFailedError):
        await fake_neon.client.operations.wait(
            [operation("a", "finished"), operation("b", "failed")]
        )
    assert fake_neon.received == []


async def test_unknown_status_is_pending(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "hibernating", 2: "finished"})
    [done] = await fake_neon.client.operations.wait(operation("a", "hibernating"))
    assert done.status == OperationStatus.FINISHED


async def test_terminal_status_counts_even_if_updated_at_is_unchanged(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=2, updated_at=EPOCH.isoformat())
    [done] = await fake_neon.client.operations.wait(operation("a"))
    assert done.status == OperationStatus.FINISHED


async def test_failure_with_a_future_retry_is_pending(fake_neon: FakeNeon) -> None:
    retry_at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    fake_neon.start("a", states={0: "failed", 2: "finished"}, retry_at=retry_at, failures_count=1)
    [done] = await fake_neon.client.operations.wait(ref("a"))
    assert (done.status, done.failures_count) == ("finished", 1)


async def test_failure_with_a_past_retry_is_final(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "failed"}, retry_at="2020-01-01T00:00:00Z")
    with pytest.raises(OperationFailedError):
        await fake_neon.client.operations.wait(ref("a"))
    assert len(fake_neon.received) == 1


@pytest.mark.parametrize("status", ["failed", "error", "cancelled"])
async def test_wait_raises_only_after_all_operations_are_finished(
    fake_neon: FakeNeon, status: str
) -> None:
    fake_neon.start("bad", ends=1, status=status, error="disk full")
    fake_neon.start("good", ends=5)
    with pytest.raises(OperationFailedError, match=r"1 of 2 .* disk full") as caught:
        await fake_neon.client.operations.wait([ref("good"), ref("bad")])
    assert [record.id for record in caught.value.failed] == ["bad"]
    assert [record.id for record in caught.value.settled] == ["good", "bad"]
    assert caught.value.pending == []


async def test_fail_fast_raises_at_the_first_failure(fake_neon: FakeNeon) -> None:
    fake_neon.start("bad", ends=1, status="failed")
    fake_neon.start("slow", ends=100)
    with pytest.raises(OperationFailedError) as caught:
        await fake_neon.client.operations.wait([ref("slow"), ref("bad")], fail_fast=True)
    assert now() < 3
    assert [record.id for record in caught.value.pending] == ["slow"]


async def test_failures_can_be_returned_instead_of_raised(fake_neon: FakeNeon) -> None:
    fake_neon.start("bad", ends=1, status="failed")
    [done] = await fake_neon.client.operations.wait(ref("bad"), raise_on_failure=False)
    assert done.status == OperationStatus.FAILED


async def test_on_update_gets_the_first_record_and_every_change(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "scheduling", 1: "running", 3: "finished"})
    seen: list[str] = []
    await fake_neon.client.operations.wait(
        operation("a", "scheduling"), on_update=lambda record: seen.append(record.status)
    )
    assert seen == ["scheduling", "running", "finished"]


async def test_error_of_on_update_is_raised_and_stops_the_polls(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=50)

    def broken(_operation: Operation) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await fake_neon.client.operations.wait(operation("a"), on_update=broken)
    await asyncio.sleep(60)
    assert fake_neon.received == []


async def update(_operation: Operation) -> None:
    raise AssertionError("a coroutine function is never called")


class AsyncUpdate:
    async def __call__(self, _operation: Operation) -> None:
        raise AssertionError("a coroutine function is never called")


@pytest.mark.parametrize("on_update", [update, partial(update), AsyncUpdate()])
async def test_coroutine_function_as_on_update_raises_at_once(
    fake_neon: FakeNeon, on_update: Callable[[Operation], object]
) -> None:
    with pytest.raises(TypeError, match=r"^on_update is .*: expected a plain function; .*watch"):
        await fake_neon.client.operations.wait(operation("a"), on_update=on_update)
    assert fake_neon.received == []


async def test_on_update_that_returns_an_awaitable_raises_at_its_first_call(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("a", ends=1)

    def coroutine(record: Operation) -> object:
        return update(record)

    def future(_record: Operation) -> object:
        return asyncio.get_running_loop().create_future()

    for on_update in (coroutine, future):
        with pytest.raises(TypeError, match=r"^on_update .* returned .*: expected a plain func"):
            await fake_neon.client.operations.wait(ref("a"), on_update=on_update)


async def test_on_update_that_is_no_function_raises_at_once(fake_neon: FakeNeon) -> None:
    not_callable: Any = "print"
    with pytest.raises(TypeError, match=r"^on_update is 'print': expected a function"):
        await fake_neon.client.operations.wait(operation("a"), on_update=not_callable)


async def test_operations_of_one_project_cost_one_page_per_poll(fake_neon: FakeNeon) -> None:
    ids = [f"op-{n}" for n in range(40)]
    for id in ids:
        fake_neon.start(id, ends=2)
    await fake_neon.client.operations.wait([operation(id) for id in ids])
    assert fake_neon.gets == 0
    assert len(fake_neon.pages) <= 8
    assert fake_neon.pages[0] == 50


async def test_missing_operation_is_still_pending(fake_neon: FakeNeon) -> None:
    fake_neon.start("buried", ends=4)
    for n in range(100):
        fake_neon.start(f"newer-{n}", ends=1)
    fake_neon.start("shown", ends=4)
    done = await fake_neon.client.operations.wait([operation("buried"), operation("shown")])
    assert now() >= 4
    assert {record.status for record in done} == {"finished"}
    assert fake_neon.gets == 1  # until the pages, which grow, contain it
    assert fake_neon.pages[:2] == [50, 400]
    assert set(fake_neon.pages[2:]) == {112}


async def test_page_is_large_enough_for_the_oldest_pending_operation(fake_neon: FakeNeon) -> None:
    for id in ("old-1", "old-2", "old-3"):
        fake_neon.start(id, ends=20)
    for n in range(100):
        fake_neon.start(f"newer-{n}", ends=1)
    await fake_neon.client.operations.wait([operation(id) for id in ("old-1", "old-2", "old-3")])
    assert max(fake_neon.pages) >= 103
    assert fake_neon.gets <= 15


async def test_waits_of_one_project_share_polls(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=30)
    await fake_neon.client.operations.wait(ref("a"))
    alone = len(fake_neon.received)
    fake_neon.received.clear()
    fake_neon.start("b", ends=now() + 30)
    await asyncio.gather(*(fake_neon.client.operations.wait(ref("b")) for _ in range(50)))
    assert len(fake_neon.received) <= alone + 2


async def test_new_wait_shortens_the_delay_of_the_poller(fake_neon: FakeNeon) -> None:
    fake_neon.start("old", ends=100)
    old = asyncio.create_task(fake_neon.client.operations.wait(ref("old")))
    await asyncio.sleep(60)
    fake_neon.start("new", ends=60.3)
    await fake_neon.client.operations.wait(operation("new"))
    assert now() < 61.5
    await old


async def test_long_wait_sends_fewer_polls_than_one_a_second(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=290)
    async with client_of(fake_neon, budget=RateBudget()) as neon:
        await neon.operations.wait(operation("a"))
    assert 60 < fake_neon.gets < 290


@pytest.mark.process
async def test_references_resume_a_wait_in_another_process(fake_neon: FakeNeon) -> None:
    written = msgspec.json.encode([ref("a"), operation("b").ref])
    script = (
        "import sys, msgspec; from neonctl_async import OperationRef; "
        "refs = msgspec.json.decode(sys.stdin.buffer.read(), type=list[OperationRef]); "
        "sys.stdout.buffer.write(msgspec.json.encode(refs[::-1]))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    output, _ = await process.communicate(written)
    refs = msgspec.json.decode(output, type=list[OperationRef])
    fake_neon.start("a", ends=2)
    fake_neon.start("b", ends=2)
    done = await fake_neon.client.operations.wait(refs)
    assert [record.id for record in done] == ["b", "a"]
    assert json.loads(written) == [{"project_id": PROJECT, "id": id} for id in ("a", "b")]


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        ([], ValueError, "empty list"),
        (iter(()), ValueError, "empty"),
        ("op-1", TypeError, "cannot wait on str"),
        (None, TypeError, "cannot wait on NoneType"),
        (42, TypeError, "expected an Operation"),
        ([operation(), "op-1"], TypeError, "item 1, str"),
        (SimpleNamespace(operations=["op-1"]), TypeError, "cannot wait on SimpleNamespace"),
        ({"operations": []}, TypeError, "item 0, str"),
    ],
)
async def test_argument_without_operations_is_rejected(
    fake_neon: FakeNeon, what: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await fake_neon.client.operations.wait(what)


@pytest.mark.parametrize(
    ("timeout", "error"),
    [
        (-1, ValueError),
        (-0.1, ValueError),
        (float("nan"), ValueError),
        (True, TypeError),
        ("10", TypeError),
    ],
)
async def test_invalid_timeout_is_rejected(
    fake_neon: FakeNeon, timeout: Any, error: type[Exception]
) -> None:
    for wait in (fake_neon.client.operations.as_completed, fake_neon.client.operations.watch):
        with pytest.raises(error, match="timeout is"):
            wait(ref("a"), timeout=timeout)
    with pytest.raises(error, match="timeout is"):
        await fake_neon.client.operations.wait(ref("a"), timeout=timeout)


async def test_fail_fast_without_raise_on_failure_is_rejected(fake_neon: FakeNeon) -> None:
    with pytest.raises(ValueError, match=r"^fail_fast=True and raise_on_failure=False "):
        await fake_neon.client.operations.wait(ref("a"), fail_fast=True, raise_on_failure=False)


@pytest.mark.parametrize("id", ["../x", "", "a/b", ".", "\ud800"])
async def test_invalid_id_is_rejected_without_a_request(fake_neon: FakeNeon, id: str) -> None:
    with pytest.raises(ValueError, match="operation_id is"):
        await fake_neon.client.operations.wait([ref("a"), ref(id)])
    with pytest.raises(ValueError, match="project_id is"):
        await fake_neon.client.operations.wait(OperationRef(project_id=id, id="a"))
    assert fake_neon.received == []
