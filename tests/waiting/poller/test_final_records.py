"""Records and responses that end a wait, and those that must not end it."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from neonctl_async import (
    NotFoundError,
    Operation,
    OperationFailedError,
    PollPolicy,
    WaitTimeoutError,
)
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon, Fault
from tests.support.records import PROJECT, client_of, operation, operation_json, ref, statuses
from tests.support.server import Received, Respond, http_response

pytestmark = pytest.mark.virtual_time

OTHER = "other-project-12345678"


def between(start: float, end: float, fault: Callable[[Received], Respond | None]) -> Fault:
    """Apply a fault from ``start`` until ``end``."""
    return lambda request: fault(request) if start <= now() < end else None


def response_with(*records: dict[str, object]) -> Callable[[Received], Respond]:
    """Respond with these records to a list request, with the first one to any other."""

    def respond(request: Received) -> Respond:
        if request.path.endswith("/operations"):
            return http_response(content={"operations": list(records)})
        return http_response(content={"operation": records[0]})

    return respond


def not_found(_request: Received) -> Respond:
    return http_response(404, {"message": "not found"})


async def outcomes_of(fake_neon: FakeNeon, *ids: str, **options: float) -> list[tuple[str, str]]:
    """Wait for operations that were announced as running at the time 0."""
    records = [operation(id) for id in ids]
    return statuses(
        await fake_neon.client.operations.wait(
            records, raise_on_failure=False, timeout=options.get("timeout", 60.0)
        )
    )


# A terminal status replaces any other one.


@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
@pytest.mark.parametrize("status", ["finished", "skipped", "failed", "error", "cancelled"])
async def test_terminal_status_counts_even_if_it_is_older_than_a_seen_record(
    fake_neon: FakeNeon, ids: list[str], status: str
) -> None:
    for id in ids:
        fake_neon.start(id, states={0: "running", 2: status})
    seen = [operation_json(id, "running", at=9) for id in ids]
    fake_neon.fault = between(0, 2, response_with(*seen))
    assert await outcomes_of(fake_neon, *ids) == [(id, status) for id in ids]


async def test_terminal_status_counts_even_if_older_than_the_announced_record(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("a", states={0: "running", 2: "finished"}, updated_at="2025-12-31T23:59:59Z")
    assert await outcomes_of(fake_neon, "a") == [("a", "finished")]


async def test_older_record_of_a_pending_operation_is_dropped(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "running", 6: "finished"})
    fake_neon.fault = between(2, 5, response_with(operation_json("a", "scheduling", at=-5)))
    seen = [record.status async for record in fake_neon.client.operations.watch(operation("a"))]
    assert seen == ["running", "finished"]


# The record of another operation is a transient failure.


@pytest.mark.parametrize(
    "record",
    [operation_json("b", "finished"), operation_json("a", "finished", project_id=OTHER)],
    ids=["other operation", "other project"],
)
async def test_record_of_another_operation_does_not_end_a_wait(
    fake_neon: FakeNeon, record: dict[str, object]
) -> None:
    fake_neon.start("a", states={0: "running", 4: "finished"})
    fake_neon.fault = between(0, 3, response_with(record))
    [done] = await fake_neon.client.operations.wait(operation("a"), timeout=60)
    assert (done.id, done.project_id) == ("a", PROJECT)
    assert now() >= 4


async def test_page_of_another_project_does_not_end_a_wait(fake_neon: FakeNeon) -> None:
    for id in ("a", "b"):
        fake_neon.start(id, states={0: "running", 4: "finished"})
    page = [operation_json(id, "finished", project_id=OTHER) for id in ("a", "b")]
    fake_neon.fault = between(0, 3, response_with(*page))
    assert await outcomes_of(fake_neon, "a", "b") == [("a", "finished"), ("b", "finished")]
    assert now() >= 4


async def test_timeout_error_shows_that_another_record_was_returned(fake_neon: FakeNeon) -> None:
    fake_neon.fault = response_with(operation_json("b", "finished"))
    with pytest.raises(WaitTimeoutError) as caught:
        await fake_neon.client.operations.wait(operation("a"), timeout=3)
    assert "another operation" in str(caught.value.last_error)


# A 404 of an operation that was announced or seen may pass.


@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
@pytest.mark.parametrize("start", [0, 2], ids=["after it was announced", "after it was seen"])
async def test_passing_404_does_not_end_a_wait(
    fake_neon: FakeNeon, ids: list[str], start: float
) -> None:
    for id in ids:
        fake_neon.start(id, states={0: "running", 8: "finished"})
    fake_neon.fault = between(start, start + 3, not_found)
    assert await outcomes_of(fake_neon, *ids) == [(id, "finished") for id in ids]


@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
async def test_lasting_404_ends_a_wait_after_a_few_seconds(
    fake_neon: FakeNeon, ids: list[str]
) -> None:
    fake_neon.fault = not_found
    with pytest.raises(NotFoundError):
        await fake_neon.client.operations.wait([operation(id) for id in ids])
    assert 5 <= now() < 6


async def test_lasting_404_ends_repeated_short_waits(fake_neon: FakeNeon) -> None:
    fake_neon.fault = not_found
    for error in (WaitTimeoutError, NotFoundError):
        with pytest.raises(error):
            await fake_neon.client.operations.wait(operation("a"), timeout=4)
    assert 5 <= now() < 6


async def test_lasting_404_ends_a_wait_that_others_join(fake_neon: FakeNeon) -> None:
    fake_neon.fault = not_found
    waits = [asyncio.create_task(fake_neon.client.operations.wait(operation("a")))]
    for _ in range(2):
        await asyncio.sleep(2.5)
        waits.append(asyncio.create_task(fake_neon.client.operations.wait(operation("a"))))
    outcomes = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [NotFoundError] * 3
    assert 5 <= now() < 6


async def test_404s_of_a_wait_long_ago_do_not_make_a_first_404_final(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "running", 3605: "finished"})
    fake_neon.fault = lambda request: not_found(request) if now() < 3602 else None
    with pytest.raises(WaitTimeoutError):
        await fake_neon.client.operations.wait(operation("a"), timeout=4)
    await asyncio.sleep(3600 - now())
    assert await outcomes_of(fake_neon, "a") == [("a", "finished")]


async def test_passing_404s_with_seconds_in_between_do_not_add_up(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "running", 30: "finished"})
    fake_neon.fault = lambda request: not_found(request) if now() % 8 < 4 else None
    async with client_of(fake_neon, polling=PollPolicy.constant(1.0)) as neon:
        [done] = await neon.operations.wait(operation("a"))
    assert done.status == "finished"


async def test_missing_grace_is_a_setting(fake_neon: FakeNeon) -> None:
    fake_neon.fault = not_found
    for grace in (0.0, 0.5):
        started = now()
        async with client_of(fake_neon, polling=PollPolicy(missing_grace=grace)) as neon:
            with pytest.raises(NotFoundError):
                await neon.operations.wait(operation("a"))
        assert now() - started == pytest.approx(0.42 + grace, abs=0.05)


async def test_404_of_an_unseen_reference_ends_its_wait_at_once(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=3)
    known = asyncio.create_task(fake_neon.client.operations.wait(operation("a")))
    await asyncio.sleep(0)
    with pytest.raises(NotFoundError):
        await fake_neon.client.operations.wait(ref("gone"))
    assert now() < 0.5
    await known


async def test_404_of_a_list_is_tolerated_while_any_operation_is_known(fake_neon: FakeNeon) -> None:
    for id in ("a", "b"):
        fake_neon.start(id, ends=4)
    fake_neon.fault = between(0, 2, not_found)
    done = await fake_neon.client.operations.wait([operation("a"), ref("b")])
    assert statuses(done) == [("a", "finished"), ("b", "finished")]


# A failure without a time of its retry is read again.


async def test_failure_without_retry_at_is_read_a_second_time(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "failed"})
    with pytest.raises(OperationFailedError):
        await fake_neon.client.operations.wait(ref("a"))
    assert len(fake_neon.received) == 2
    assert now() == pytest.approx(1, abs=0.01)


async def test_failed_operation_that_neon_retries_is_a_success(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "running", 0.2: "failed", 1: "running", 3: "finished"})
    seen: list[str] = []
    [done] = await fake_neon.client.operations.wait(
        operation("a"), on_update=lambda record: seen.append(record.status)
    )
    assert done.status == "finished"
    assert seen == ["running", "failed", "running", "finished"]


@pytest.mark.parametrize("status", ["error", "cancelled"])
async def test_error_and_cancelled_are_final_at_once(fake_neon: FakeNeon, status: str) -> None:
    fake_neon.start("a", states={0: status})
    with pytest.raises(OperationFailedError):
        await fake_neon.client.operations.wait(ref("a"))
    assert len(fake_neon.received) == 1


@pytest.mark.parametrize("grace", [0.0, 3.0])
async def test_failed_grace_is_a_setting(fake_neon: FakeNeon, grace: float) -> None:
    fake_neon.start("a", states={0: "failed"})
    async with client_of(fake_neon, polling=PollPolicy(failed_grace=grace)) as neon:
        with pytest.raises(OperationFailedError):
            await neon.operations.wait(ref("a"))
    assert now() == pytest.approx(grace, abs=0.01)
    assert len(fake_neon.received) == (2 if grace else 1)


async def test_failure_is_final_at_the_deadline(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "running", 2.5: "failed"})
    with pytest.raises(OperationFailedError):
        await fake_neon.client.operations.wait(operation("a"), timeout=3)
    assert now() == pytest.approx(3, abs=0.01)


async def test_timeout_error_counts_an_unconfirmed_failure_as_settled(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "running", 2.5: "failed"})
    fake_neon.start("b", ends=100)
    with pytest.raises(WaitTimeoutError) as caught:
        await fake_neon.client.operations.wait([operation("a"), operation("b")], timeout=3)
    assert statuses(caught.value.settled) == [("a", "failed")]


async def test_stale_page_does_not_confirm_a_failure(fake_neon: FakeNeon) -> None:
    for id in ("a", "b"):
        fake_neon.start(id, states={0: "running", 2: "failed", 6: "finished"})
    stale = [operation_json(id, "running", at=1) for id in ("a", "b")]
    fake_neon.fault = between(3, 6, response_with(*stale))
    assert await outcomes_of(fake_neon, "a", "b") == [("a", "finished"), ("b", "finished")]


async def test_failed_poll_does_not_confirm_a_failure(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "failed", 8: "finished"})
    fake_neon.fault = between(0.5, 8.1, lambda _request: http_response(503))
    assert await outcomes_of(fake_neon, "a") == [("a", "finished")]
    assert len(fake_neon.received) <= 9


async def test_fail_fast_waits_for_the_confirmation_only(fake_neon: FakeNeon) -> None:
    fake_neon.start("bad", states={0: "running", 0.2: "failed"})
    fake_neon.start("slow", ends=100)
    with pytest.raises(OperationFailedError) as caught:
        await fake_neon.client.operations.wait(
            [operation("slow"), operation("bad")], fail_fast=True
        )
    assert now() == pytest.approx(1.42, abs=0.1)
    assert [record.id for record in caught.value.failed] == ["bad"]


@pytest.mark.parametrize("end", ["failed", "error"])
async def test_failures_cost_no_more_polls_while_the_wait_needs_other_operations(
    fake_neon: FakeNeon, end: str
) -> None:
    ids = [f"op-{number}" for number in range(20)]
    for number, id in enumerate(ids):
        fake_neon.start(id, ends=number, status=end)
    await fake_neon.client.operations.wait([ref(id) for id in ids], raise_on_failure=False)
    confirmations = len(ids) if end == "failed" else 0
    assert len(fake_neon.received) <= 30 + confirmations


async def test_as_completed_yields_a_failure_once_when_it_is_confirmed(fake_neon: FakeNeon) -> None:
    fake_neon.start("bad", states={0: "failed"})
    yielded = [
        (record.id, round(now()))
        async for record in fake_neon.client.operations.as_completed(ref("bad"))
    ]
    assert yielded == [("bad", 1)]


async def test_second_wait_for_a_new_failure_ends_with_the_first(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "failed"})
    first = asyncio.create_task(fake_neon.client.operations.wait(ref("a"), raise_on_failure=False))
    await asyncio.sleep(0.5)
    second = await fake_neon.client.operations.wait(ref("a"), raise_on_failure=False)
    assert await first == second
    assert len(fake_neon.received) == 2


# The clock of the server.


def with_date(fake_neon: FakeNeon, id: str, ahead: timedelta) -> Fault:
    """Respond with the header ``Date`` of a server whose clock is ``ahead``."""

    def respond(_request: Received) -> Respond:
        date = format_datetime(server_time(ahead), usegmt=True)
        record = fake_neon.record(id)
        content = {"operation": record, "operations": [record]}
        return http_response(content=content, headers={"Date": date})

    return respond


def server_time(ahead: timedelta) -> datetime:
    loop_now = getattr(asyncio.get_running_loop(), "utc_now", lambda: datetime.now(UTC))
    time: datetime = loop_now()
    return time + ahead


@pytest.mark.parametrize("hours", [-1, 0, 1])
async def test_retry_at_is_compared_with_the_clock_of_the_server(
    fake_neon: FakeNeon, hours: int
) -> None:
    ahead = timedelta(hours=hours)
    retry_at = (server_time(ahead) + timedelta(seconds=5)).isoformat()
    fake_neon.start("a", states={0: "failed"}, retry_at=retry_at)
    fake_neon.fault = with_date(fake_neon, "a", ahead)
    with pytest.raises(OperationFailedError):
        await fake_neon.client.operations.wait(ref("a"), timeout=600)
    assert 5 <= now() <= 12


@pytest.mark.parametrize("hours", [-1, 0, 1])
async def test_record_of_a_caller_is_compared_with_the_clock_of_the_server(
    fake_neon: FakeNeon, hours: int
) -> None:
    ahead = timedelta(hours=hours)
    retry_at = (server_time(ahead) + timedelta(seconds=5)).isoformat()
    fake_neon.start("a", states={0: "failed", 8: "finished"}, retry_at=retry_at)
    fake_neon.fault = with_date(fake_neon, "a", ahead)
    record = await fake_neon.client.operations.get(PROJECT, "a")
    assert isinstance(record, Operation)
    await asyncio.sleep(4)
    waiting = asyncio.create_task(fake_neon.client.operations.wait(record, timeout=3))
    await asyncio.sleep(0)
    assert not waiting.done()
    await asyncio.wait([waiting])
    assert isinstance(waiting.exception(), OperationFailedError)
