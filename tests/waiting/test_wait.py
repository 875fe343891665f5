"""Operations.wait: what it takes, gives back and costs, on a virtual clock."""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from neonctl_async import (
    Operation,
    OperationFailedError,
    OperationRef,
    OperationStatus,
)
from tests.support.clock import now
from tests.support.platform import Platform
from tests.support.records import EPOCH, PROJECT, client_of, operation, ref

pytestmark = pytest.mark.virtual_time


async def test_returns_final_records_in_the_order_given_duplicates_included() -> None:
    platform = Platform()
    platform.start("a", ends=3)
    platform.start("b", ends=1)
    async with platform.server, client_of(platform.server) as neon:
        done = await neon.operations.wait([operation("a"), operation("b"), ref("a")])
    assert [(one.id, one.status) for one in done] == [
        ("a", "finished"),
        ("b", "finished"),
        ("a", "finished"),
    ]


async def test_what_has_ended_already_costs_no_request() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        given = [operation("a", "finished"), operation("b", "skipped")]
        assert await neon.operations.wait(given) == given
    assert platform.server.received == []


async def test_what_has_failed_already_is_told_without_a_request() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(OperationFailedError):
            await neon.operations.wait([operation("a", "finished"), operation("b", "failed")])
    assert platform.server.received == []


async def test_an_unknown_status_is_pending() -> None:
    platform = Platform()
    platform.start("a", states={0: "hibernating", 2: "finished"})
    async with platform.server, client_of(platform.server) as neon:
        [done] = await neon.operations.wait(operation("a", "hibernating"))
    assert done.status == OperationStatus.FINISHED


async def test_an_end_is_seen_though_the_platform_tells_no_newer_time() -> None:
    platform = Platform()
    platform.start("a", ends=2, updated_at=EPOCH.isoformat())
    async with platform.server, client_of(platform.server) as neon:
        [done] = await neon.operations.wait(operation("a"))
    assert done.status == OperationStatus.FINISHED


async def test_a_failure_that_will_be_retried_is_pending() -> None:
    platform = Platform()
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    platform.start("a", states={0: "failed", 2: "finished"}, retry_at=soon, failures_count=1)
    async with platform.server, client_of(platform.server) as neon:
        [done] = await neon.operations.wait(ref("a"))
    assert (done.status, done.failures_count) == ("finished", 1)


async def test_a_failure_whose_retry_time_has_passed_is_final() -> None:
    platform = Platform()
    platform.start("a", states={0: "failed"}, retry_at="2020-01-01T00:00:00Z")
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(OperationFailedError):
            await neon.operations.wait(ref("a"))
    assert len(platform.server.received) == 1


@pytest.mark.parametrize("status", ["failed", "error", "cancelled"])
async def test_waits_for_all_before_it_raises_for_some(status: str) -> None:
    platform = Platform()
    platform.start("bad", ends=1, status=status, error="disk full")
    platform.start("good", ends=5)
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(OperationFailedError, match=r"1 of 2 .* disk full") as caught:
            await neon.operations.wait([ref("good"), ref("bad")])
    assert [one.id for one in caught.value.failed] == ["bad"]
    assert [one.id for one in caught.value.settled] == ["good", "bad"]
    assert caught.value.pending == []


async def test_fail_fast_raises_at_the_first_failure() -> None:
    platform = Platform()
    platform.start("bad", ends=1, status="failed")
    platform.start("slow", ends=100)
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(OperationFailedError) as caught:
            await neon.operations.wait([ref("slow"), ref("bad")], fail_fast=True)
        assert now() < 3
    assert [one.id for one in caught.value.pending] == ["slow"]


async def test_failures_can_be_returned_instead_of_raised() -> None:
    platform = Platform()
    platform.start("bad", ends=1, status="failed")
    async with platform.server, client_of(platform.server) as neon:
        [done] = await neon.operations.wait(ref("bad"), raise_on_failure=False)
    assert done.status == OperationStatus.FAILED


async def test_on_update_sees_the_first_state_and_every_change() -> None:
    platform = Platform()
    platform.start("a", states={0: "scheduling", 1: "running", 3: "finished"})
    seen: list[str] = []
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(
            operation("a", "scheduling"), on_update=lambda one: seen.append(one.status)
        )
    assert seen == ["scheduling", "running", "finished"]


async def test_an_error_of_on_update_reaches_the_caller_and_ends_the_polling() -> None:
    platform = Platform()
    platform.start("a", ends=50)

    def broken(_operation: Operation) -> None:
        raise LookupError

    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(LookupError):
            await neon.operations.wait(operation("a"), on_update=broken)
        await asyncio.sleep(60)
    assert platform.server.received == []


async def test_several_operations_of_a_project_cost_one_page_a_look() -> None:
    platform = Platform()
    ids = [f"op-{n}" for n in range(40)]
    for id in ids:
        platform.start(id, ends=2)
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait([operation(id) for id in ids])
    assert platform.gets == 0
    assert len(platform.pages) <= 8
    assert platform.pages[0] == 50


async def test_absence_from_the_page_is_not_taken_for_an_end() -> None:
    platform = Platform()
    platform.start("buried", ends=4)
    for n in range(100):
        platform.start(f"newer-{n}", ends=1)
    platform.start("shown", ends=4)
    async with platform.server, client_of(platform.server) as neon:
        done = await neon.operations.wait([operation("buried"), operation("shown")])
        assert now() >= 4
    assert {one.status for one in done} == {"finished"}
    assert platform.gets == len(platform.pages)


async def test_the_page_reaches_as_far_back_as_the_pending_ones() -> None:
    platform = Platform()
    for id in ("old-1", "old-2", "old-3"):
        platform.start(id, ends=20)
    for n in range(100):
        platform.start(f"newer-{n}", ends=1)
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait([operation(id) for id in ("old-1", "old-2", "old-3")])
    assert max(platform.pages) >= 103
    assert platform.gets <= 15


async def test_waits_of_one_project_share_the_polls() -> None:
    platform = Platform()
    platform.start("a", ends=30)
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(ref("a"))
        alone = len(platform.server.received)
        platform.server.received.clear()
        platform.start("b", ends=now() + 30)
        await asyncio.gather(*(neon.operations.wait(ref("b")) for _ in range(50)))
    assert len(platform.server.received) <= alone + 2


async def test_a_new_wait_hurries_a_slow_poller_up() -> None:
    platform = Platform()
    platform.start("old", ends=100)
    async with platform.server, client_of(platform.server) as neon:
        old = asyncio.create_task(neon.operations.wait(ref("old")))
        await asyncio.sleep(60)
        platform.start("new", ends=60.3)
        await neon.operations.wait(operation("new"))
        assert now() < 61.5
        await old


async def test_polls_grow_rarer_as_the_wait_grows_long() -> None:
    platform = Platform()
    platform.start("a", ends=290)
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(operation("a"))
    assert 60 < platform.gets < 80


@pytest.mark.process
async def test_references_resume_a_wait_in_another_process() -> None:
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
    platform = Platform()
    platform.start("a", ends=2)
    platform.start("b", ends=2)
    async with platform.server, client_of(platform.server) as neon:
        done = await neon.operations.wait(refs)
    assert [one.id for one in done] == ["b", "a"]
    assert json.loads(written) == [
        {"project_id": PROJECT, "id": "a"},
        {"project_id": PROJECT, "id": "b"},
    ]


@pytest.mark.parametrize(
    ("what", "error", "said"),
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
async def test_what_holds_no_operations_is_refused(
    what: Any, error: type[Exception], said: str
) -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(error, match=said):
            await neon.operations.wait(what)


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
async def test_a_timeout_that_is_no_time_is_refused(timeout: Any, error: type[Exception]) -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        for wait in (neon.operations.as_completed, neon.operations.watch):
            with pytest.raises(error, match="timeout is"):
                wait(ref("a"), timeout=timeout)
        with pytest.raises(error, match="timeout is"):
            await neon.operations.wait(ref("a"), timeout=timeout)


async def test_fail_fast_contradicts_not_raising() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(ValueError, match=r"^fail_fast=True .* raise_on_failure=False .* it$"):
            await neon.operations.wait(ref("a"), fail_fast=True, raise_on_failure=False)


@pytest.mark.parametrize("bad", ["../x", "", "a/b", ".", "\ud800"])
async def test_an_id_that_cannot_be_one_is_refused_before_any_request(bad: str) -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(ValueError, match="operation_id is"):
            await neon.operations.wait([ref("a"), ref(bad)])
        with pytest.raises(ValueError, match="project_id is"):
            await neon.operations.wait(OperationRef(project_id=bad, id="a"))
    assert platform.server.received == []
