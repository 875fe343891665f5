"""Operations.wait against a platform on a virtual clock."""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import anyio
import msgspec
import pytest

from neonctl_async import (
    AuthenticationError,
    ClientClosedError,
    NeonError,
    NotFoundError,
    Operation,
    OperationFailedError,
    OperationRef,
    OperationStatus,
    PermissionDeniedError,
    PollPolicy,
    RateBudget,
    ServerError,
    WaitTimeoutError,
)
from neonctl_async.waiting.source import OperationSource
from tests.support.platform import Platform
from tests.support.records import PROJECT, client_of, operation, operation_json
from tests.support.server import Respond, answer, drop, hang, in_turn

pytestmark = pytest.mark.virtual_time


def now() -> float:
    return asyncio.get_running_loop().time()


def ref(id: str) -> OperationRef:
    return OperationRef(project_id=PROJECT, id=id)


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


async def test_an_unknown_status_is_pending() -> None:
    platform = Platform()
    platform.start("a", states={0: "hibernating", 2: "finished"})
    async with platform.server, client_of(platform.server) as neon:
        [done] = await neon.operations.wait(operation("a", "hibernating"))
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


async def test_the_deadline_tells_what_is_settled_and_what_is_pending() -> None:
    platform = Platform()
    platform.start("quick", ends=1)
    platform.start("slow", ends=1000)
    platform.hidden = {"unseen"}
    platform.start("unseen", ends=1000)
    platform.fault = lambda request: answer(503) if request.path.endswith("/unseen") else None
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(WaitTimeoutError, match=r"2 of 3 .* after 20 s") as caught:
            await neon.operations.wait([ref("quick"), ref("slow"), ref("unseen")], timeout=20)
        assert now() == pytest.approx(20, abs=0.01)
    error = caught.value
    assert isinstance(error, TimeoutError)
    assert [one.id for one in error.settled] == ["quick"]
    assert isinstance(error.pending[0], Operation)
    assert error.pending[0].ref == ref("slow")
    assert error.pending[1] == ref("unseen")
    assert isinstance(error.last_error, ServerError)


async def test_pending_operations_of_a_timeout_can_be_waited_on_again() -> None:
    platform = Platform()
    platform.start("slow", ends=30)
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(WaitTimeoutError) as caught:
            await neon.operations.wait(ref("slow"), timeout=5)
        [done] = await neon.operations.wait(caught.value.pending)
    assert done.status == OperationStatus.FINISHED


async def test_the_deadline_bounds_a_request_that_hangs() -> None:
    platform = Platform()
    platform.fault = lambda _request: hang
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(WaitTimeoutError):
            await neon.operations.wait(ref("a"), timeout=3)
        assert now() == pytest.approx(3, abs=0.01)
        assert platform.server.open_connections <= 1


async def test_a_last_look_is_taken_just_before_the_deadline() -> None:
    platform = Platform()
    platform.start("a", ends=6.5)
    async with (
        platform.server,
        client_of(platform.server, polling=PollPolicy.constant(5.0)) as neon,
    ):
        [done] = await neon.operations.wait(operation("a"), timeout=7)
    assert done.status == OperationStatus.FINISHED
    assert platform.gets == 2


async def test_a_deadline_of_zero_looks_at_what_is_known_and_asks_nothing() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        assert len(await neon.operations.wait(operation("a", "finished"), timeout=0)) == 1
        with pytest.raises(WaitTimeoutError):
            await neon.operations.wait(operation("b"), timeout=0)
    assert platform.server.received == []


async def test_without_a_deadline_it_waits_on_and_on() -> None:
    platform = Platform()
    platform.start("a", ends=3000)
    async with (
        platform.server,
        client_of(platform.server, polling=PollPolicy.constant(100)) as neon,
    ):
        [done] = await neon.operations.wait(operation("a"), timeout=None)
    assert done.status == OperationStatus.FINISHED


@pytest.mark.parametrize(
    "fault",
    [
        answer(408),
        answer(423),
        answer(429),
        answer(500),
        answer(502),
        answer(503),
        answer(520),
        answer(200, body=b"<html>a proxy speaks</html>"),
        drop(),
        drop(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"),
    ],
)
@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
async def test_failures_that_pass_are_absorbed(fault: Respond, ids: list[str]) -> None:
    platform = Platform()
    for id in ids:
        platform.start(id, ends=12)
    platform.fault = lambda _request: fault if now() < 10 else None
    async with platform.server, client_of(platform.server) as neon:
        done = await neon.operations.wait([ref(id) for id in ids])
    assert {one.status for one in done} == {"finished"}


async def test_a_hanging_poll_is_given_up_and_taken_again() -> None:
    platform = Platform()
    platform.start("a", ends=1)
    platform.fault = lambda _request: hang if now() < 20 else None
    async with platform.server, client_of(platform.server) as neon:
        [done] = await neon.operations.wait(ref("a"))
    assert done.status == OperationStatus.FINISHED


async def test_the_platforms_retry_after_delays_the_next_poll() -> None:
    platform = Platform()
    platform.start("a", ends=1)
    limited = answer(429, headers={"Retry-After": "40"})
    platform.fault = lambda _request: limited if now() < 30 else None
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(ref("a"))
    assert len(platform.server.received) == 2


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, AuthenticationError), (403, PermissionDeniedError), (404, NotFoundError)],
)
@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
async def test_answers_that_will_not_change_end_the_wait_after_one_request(
    status: int, error: type[NeonError], ids: list[str]
) -> None:
    platform = Platform()
    platform.fault = lambda _request: answer(status)
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(error):
            await neon.operations.wait([ref(id) for id in ids])
    assert len(platform.server.received) == 1


async def test_one_vanished_operation_ends_its_own_wait_only() -> None:
    platform = Platform()
    platform.start("a", ends=5)
    async with platform.server, client_of(platform.server) as neon:
        results = await asyncio.gather(
            neon.operations.wait(ref("a")),
            neon.operations.wait(ref("gone")),
            neon.operations.wait(ref("gone")),
            return_exceptions=True,
        )
    assert isinstance(results[0], list)
    assert isinstance(results[1], NotFoundError)
    assert isinstance(results[2], NotFoundError)
    assert results[1] is not results[2]


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


async def test_a_list_that_lags_behind_takes_nothing_back() -> None:
    platform = Platform()
    platform.start("a", states={0: "scheduling", 1: "running", 30: "finished"})
    platform.start("b", ends=30)
    stale = answer(
        200, {"operations": [operation_json("a", "scheduling"), operation_json("b", "running")]}
    )
    platform.fault = lambda request: (
        stale if request.path.endswith("/operations") and 5 < now() < 20 else None
    )
    seen: list[str] = []
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(
            [ref("a"), ref("b")],
            on_update=lambda one: seen.append(one.status) if one.id == "a" else None,
        )
    assert seen == ["scheduling", "running", "finished"]


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


async def test_cancelling_one_wait_leaves_the_others_alone() -> None:
    platform = Platform()
    platform.start("a", ends=20)
    async with platform.server, client_of(platform.server) as neon:
        kept = asyncio.create_task(neon.operations.wait(ref("a")))
        dropped = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(5)
        dropped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dropped
        [done] = await kept
    assert done.status == OperationStatus.FINISHED


async def test_the_last_wait_to_go_stops_the_polling() -> None:
    platform = Platform()
    platform.start("a", ends=1000)
    async with platform.server, client_of(platform.server) as neon:
        waits = [asyncio.create_task(neon.operations.wait(ref("a"))) for _ in range(3)]
        await asyncio.sleep(5)
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
        polls = len(platform.server.received)
        await asyncio.sleep(100)
    assert len(platform.server.received) == polls


async def test_a_wait_cancelled_while_a_poll_hangs_ends_at_once() -> None:
    platform = Platform()
    platform.fault = lambda _request: hang
    async with platform.server, client_of(platform.server) as neon:
        wait = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(1)
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        assert now() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("library", ["asyncio", "anyio"])
async def test_a_timeout_of_the_callers_works_around_a_wait(library: str) -> None:
    platform = Platform()
    platform.start("a", ends=1000)
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(TimeoutError) as caught:
            if library == "asyncio":
                async with asyncio.timeout(5):
                    await neon.operations.wait(ref("a"))
            else:
                with anyio.fail_after(5):
                    await neon.operations.wait(ref("a"))
        assert not isinstance(caught.value, WaitTimeoutError)
        assert now() == pytest.approx(5, abs=0.01)


async def test_closing_the_client_ends_what_still_waits() -> None:
    platform = Platform()
    platform.start("a", ends=1000)
    async with platform.server:
        neon = client_of(platform.server)
        wait = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(3)
        await neon.aclose()
        with pytest.raises(ClientClosedError):
            await wait
        with pytest.raises(ClientClosedError):
            await neon.operations.wait(ref("a"))
        await neon.aclose()


async def test_a_client_may_be_closed_in_another_task_than_it_was_opened_in() -> None:
    platform = Platform()
    platform.start("a", ends=2)
    async with platform.server:
        neon = await asyncio.create_task(client_of(platform.server).__aenter__())
        await asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.create_task(neon.aclose())


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
    what: object, error: type[Exception], said: str
) -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(error, match=said):
            await neon.operations.wait(what)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("timeout", [-1, -0.1, float("nan")])
async def test_a_timeout_that_is_no_time_is_refused(timeout: float) -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        for wait in (neon.operations.as_completed, neon.operations.watch):
            with pytest.raises(ValueError, match="timeout is"):
                wait(ref("a"), timeout=timeout)
        with pytest.raises(ValueError, match="timeout is"):
            await neon.operations.wait(ref("a"), timeout=timeout)


async def test_fail_fast_contradicts_not_raising() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(ValueError, match="contradicts"):
            await neon.operations.wait(ref("a"), fail_fast=True, raise_on_failure=False)


async def test_a_defect_of_a_poll_reaches_the_wait_instead_of_hanging_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    platform = Platform()
    platform.start("a", ends=10)
    async with platform.server, client_of(platform.server) as neon:

        async def broken(*_args: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("neonctl_async.waiting.source.OperationSource.get", broken)
        with pytest.raises(ZeroDivisionError):
            await neon.operations.wait(ref("a"))


async def test_a_look_that_hangs_holds_up_no_other_operation() -> None:
    platform = Platform()
    platform.start("quick", ends=1)
    platform.start("later", ends=3)
    platform.fault = lambda request: hang if request.path.endswith("/stuck") else None
    async with platform.server, client_of(platform.server) as neon:
        stuck = asyncio.create_task(neon.operations.wait(ref("stuck"), timeout=50))
        await asyncio.sleep(0.5)
        await neon.operations.wait(ref("quick"))
        assert now() < 2
        ended = [one.id async for one in neon.operations.as_completed([ref("later")])]
        assert (ended, now() < 5) == (["later"], True)
        with pytest.raises(WaitTimeoutError):
            await stuck
        assert now() == pytest.approx(50, abs=0.01)


async def test_a_look_that_hangs_is_given_up_and_taken_again() -> None:
    platform = Platform()
    platform.start("a", ends=1)
    responses = in_turn(hang, answer(200, {"operation": operation_json("a", "finished")}))
    platform.fault = responses
    async with platform.server, client_of(platform.server) as neon:
        [done] = await neon.operations.wait(ref("a"))
        assert 10 <= now() < 16
    assert done.status == OperationStatus.FINISHED


async def test_waiting_for_the_budget_is_not_taken_for_a_look_that_hangs() -> None:
    platform = Platform()
    platform.start("a", ends=1)
    async with (
        platform.server,
        client_of(platform.server, budget=RateBudget(per_minute=1)) as neon,
    ):
        await neon.operations.get(PROJECT, "a")
        await neon.operations.wait(ref("a"))
        assert now() == pytest.approx(60, abs=1)
    assert len(platform.server.received) == 2


@pytest.mark.parametrize("bad", ["../x", "", "a/b", ".", "\ud800"])
async def test_an_id_that_cannot_be_one_is_refused_before_any_request(bad: str) -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(ValueError, match="operation_id is"):
            await neon.operations.wait([ref("a"), ref(bad)])
        with pytest.raises(ValueError, match="project_id is"):
            await neon.operations.wait(OperationRef(project_id=bad, id="a"))
    assert platform.server.received == []


async def test_a_defect_of_one_poll_ends_only_the_waits_it_concerns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    platform = Platform()
    platform.start("a", ends=2)
    platform.start("b", ends=2)
    platform.hidden = {"a", "b"}
    get = OperationSource.get

    async def broken(source: OperationSource, wanted: OperationRef) -> Operation:
        if wanted.id == "b":
            raise ZeroDivisionError
        return await get(source, wanted)

    monkeypatch.setattr(OperationSource, "get", broken)
    async with platform.server, client_of(platform.server) as neon:
        kept = asyncio.create_task(neon.operations.wait(ref("a")))
        with pytest.raises(ZeroDivisionError):
            await neon.operations.wait(ref("b"))
        [done] = await kept
    assert done.status == OperationStatus.FINISHED


async def test_polling_that_somebody_else_cancels_leaves_no_wait_hanging() -> None:
    platform = Platform()
    platform.start("a", ends=1000)
    async with platform.server, client_of(platform.server) as neon:
        wait = asyncio.create_task(neon.operations.wait(ref("a"), timeout=None))
        await asyncio.sleep(1)
        [polling] = [task for task in asyncio.all_tasks() if task.get_name().startswith("poll ")]
        polling.cancel()
        with pytest.raises(ClientClosedError):
            await wait


async def test_closing_while_being_cancelled_closes_all_the_same() -> None:
    platform = Platform()
    platform.start("a", ends=1000)
    async with platform.server:
        neon = client_of(platform.server)
        wait = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(1)
        closing = asyncio.create_task(neon.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing, wait])
        with pytest.raises(ClientClosedError):
            await neon.projects.get(PROJECT)
        assert isinstance(wait.exception(), ClientClosedError)


async def test_a_429_that_asks_to_wait_slows_the_whole_client_down() -> None:
    platform = Platform()
    platform.start("a", ends=1)
    limited = answer(429, headers={"Retry-After": "20"})
    platform.fault = lambda _request: limited if now() < 1 else None
    async with platform.server, client_of(platform.server) as neon:
        first = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(0.1)
        platform.start("b", ends=1, project_id="other-project-12345678")
        await neon.operations.wait(OperationRef(project_id="other-project-12345678", id="b"))
        await first
    assert len(platform.server.received) == 3
