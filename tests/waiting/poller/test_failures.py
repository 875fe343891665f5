"""Waits whose polls fail, hang or return outdated records."""

import asyncio

import pytest

from neonctl_async import (
    APIError,
    AuthenticationError,
    ClientClosedError,
    NotFoundError,
    Operation,
    OperationRef,
    OperationStatus,
    PermissionDeniedError,
    RateLimitedError,
    WaitTimeoutError,
)
from neonctl_async.transport.budget import Slot
from neonctl_async.waiting.source import OperationSource
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, operation, operation_json, ref
from tests.support.server import Received, Respond, drop, hang, http_response

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize(
    "fault",
    [
        *map(http_response, (408, 423, 429, 500, 502, 503, 520)),
        http_response(200, body=b"<html>an error page of a proxy</html>"),
        drop(),
        drop(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"),
    ],
)
@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
async def test_transient_failures_do_not_end_a_wait(
    fake_neon: FakeNeon, fault: Respond, ids: list[str]
) -> None:
    for id in ids:
        fake_neon.start(id, ends=12)
    fake_neon.fault = lambda _request: fault if now() < 10 else None
    done = await fake_neon.client.operations.wait([ref(id) for id in ids])
    assert {record.status for record in done} == {"finished"}


def limit_rate(fake_neon: FakeNeon, until: float, retry_after: int, status: int = 429) -> None:
    """Respond with ``Retry-After`` until a time of the loop."""
    rejection = http_response(status, headers={"Retry-After": str(retry_after)})
    fake_neon.fault = lambda _request: rejection if now() < until else None


async def test_failed_poll_is_no_sign_that_an_operation_of_known_duration_is_pending(
    fake_neon: FakeNeon,
) -> None:
    for number in range(10):
        name = f"before-{number}"
        fake_neon.start(name, states={now(): "running", now() + 1.0 + number: "finished"})
        await fake_neon.client.operations.wait(operation(name))
    failed_at: list[float] = []

    def fail_once(_request: Received) -> Respond | None:
        if failed_at:
            return None
        failed_at.append(now())
        return http_response(503)

    fake_neon.fault = fail_once
    fake_neon.start("last", states={now(): "running", now() + 0.5: "finished"})
    await fake_neon.client.operations.wait(operation("last"))
    assert now() - failed_at[0] <= 0.47


async def test_retry_after_delays_the_next_poll(fake_neon: FakeNeon) -> None:
    limit_rate(fake_neon, until=30, retry_after=40)
    fake_neon.start("a", ends=1)
    await fake_neon.client.operations.wait(ref("a"))
    assert len(fake_neon.received) == 2


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, AuthenticationError), (403, PermissionDeniedError), (404, NotFoundError)],
)
@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
async def test_permanent_errors_end_a_wait_after_one_request(
    fake_neon: FakeNeon, status: int, error: type[APIError], ids: list[str]
) -> None:
    fake_neon.fault = lambda _request: http_response(status)
    with pytest.raises(error) as caught:
        await fake_neon.client.operations.wait([ref(id) for id in ids])
    assert caught.value.method == "GET"
    assert len(fake_neon.received) == 1


async def test_404_ends_only_the_waits_of_its_operation(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=5)
    results = await asyncio.gather(
        fake_neon.client.operations.wait(ref("a")),
        fake_neon.client.operations.wait(ref("gone")),
        fake_neon.client.operations.wait(ref("gone")),
        return_exceptions=True,
    )
    assert isinstance(results[0], list)
    assert isinstance(results[1], NotFoundError)
    assert isinstance(results[2], NotFoundError)
    assert results[1] is not results[2]


async def test_outdated_list_does_not_replace_newer_records(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", states={0: "scheduling", 1: "running", 30: "finished"})
    fake_neon.start("b", ends=30)
    stale = http_response(
        200, {"operations": [operation_json("a", "scheduling"), operation_json("b", "running")]}
    )
    fake_neon.fault = lambda request: (
        stale if request.path.endswith("/operations") and 5 < now() < 20 else None
    )
    seen: list[str] = []
    await fake_neon.client.operations.wait(
        [ref("a"), ref("b")],
        on_update=lambda record: seen.append(record.status) if record.id == "a" else None,
    )
    assert seen == ["scheduling", "running", "finished"]


async def test_unexpected_exception_of_a_poll_is_raised_by_the_wait(
    fake_neon: FakeNeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_neon.start("a", ends=10)

    async def broken(*_args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("neonctl_async.waiting.source.OperationSource.get", broken)
    with pytest.raises(ZeroDivisionError):
        await fake_neon.client.operations.wait(ref("a"))


async def test_hanging_poll_does_not_delay_other_operations(fake_neon: FakeNeon) -> None:
    fake_neon.start("quick", ends=1)
    fake_neon.start("later", ends=3)
    fake_neon.fault = lambda request: hang if request.path.endswith("/stuck") else None
    stuck = asyncio.create_task(fake_neon.client.operations.wait(ref("stuck"), timeout=50))
    await asyncio.sleep(0.5)
    await fake_neon.client.operations.wait(ref("quick"))
    assert now() < 2
    finished = [
        record.id async for record in fake_neon.client.operations.as_completed([ref("later")])
    ]
    assert (finished, now() < 5) == (["later"], True)
    with pytest.raises(WaitTimeoutError):
        await stuck
    assert now() == pytest.approx(50, abs=0.01)


async def test_unexpected_exception_ends_only_the_waits_of_its_operation(
    fake_neon: FakeNeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_neon.start("a", ends=2)
    fake_neon.start("b", ends=2)
    fake_neon.hidden = {"a", "b"}
    get = OperationSource.get

    async def broken(
        source: OperationSource, reference: OperationRef, slot: Slot | None = None
    ) -> Operation:
        if reference.id == "b":
            raise ZeroDivisionError
        return await get(source, reference, slot)

    monkeypatch.setattr(OperationSource, "get", broken)
    other = asyncio.create_task(fake_neon.client.operations.wait(ref("a")))
    with pytest.raises(ZeroDivisionError):
        await fake_neon.client.operations.wait(ref("b"))
    [done] = await other
    assert done.status == OperationStatus.FINISHED


async def test_cancelled_polling_task_ends_its_waits(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1000)
    wait = asyncio.create_task(fake_neon.client.operations.wait(ref("a"), timeout=None))
    await asyncio.sleep(1)
    [polling_task] = [task for task in asyncio.all_tasks() if task.get_name().startswith("poll ")]
    polling_task.cancel()
    with pytest.raises(ClientClosedError, match=r"^the polling task was cancelled$"):
        await wait


async def test_polling_task_that_is_cancelled_before_it_starts_ends_its_waits(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("a", ends=1000)
    wait = asyncio.create_task(fake_neon.client.operations.wait(ref("a"), timeout=None))
    polling: list[asyncio.Task[object]] = []
    while not polling:
        await asyncio.sleep(0)
        polling = [task for task in asyncio.all_tasks() if task.get_name().startswith("poll ")]
    polling[0].cancel()
    with pytest.raises(ClientClosedError, match=r"^the polling task was cancelled$"):
        async with asyncio.timeout(60):
            await wait


async def test_impossible_total_duration_ms_ends_no_wait(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=3.0, total_duration_ms=10**400)
    fake_neon.start("b", ends=3.0, total_duration_ms=-(10**400))
    await fake_neon.client.operations.wait([operation("a"), operation("b")])
    assert now() <= 5.0
    assert len(fake_neon.received) <= 6


async def test_retry_after_of_a_429_delays_all_projects(fake_neon: FakeNeon) -> None:
    limit_rate(fake_neon, until=1, retry_after=20)
    fake_neon.start("a", ends=1)
    first = asyncio.create_task(fake_neon.client.operations.wait(ref("a")))
    await asyncio.sleep(0.1)
    other = OperationRef(project_id="other-project-12345678", id="b")
    fake_neon.start("b", ends=1, project_id=other.project_id)
    await fake_neon.client.operations.wait(other)
    await first
    assert len(fake_neon.received) == 3


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_of_a_day_delays_polls_by_one_minute(
    fake_neon: FakeNeon, status: int
) -> None:
    limit_rate(fake_neon, until=1, retry_after=86400, status=status)
    fake_neon.start("a", ends=1)
    await fake_neon.client.operations.wait(ref("a"), timeout=None)
    assert now() == pytest.approx(60, abs=1)
    assert len(fake_neon.received) == 2


async def test_retry_after_of_hours_delays_the_client_by_one_minute(fake_neon: FakeNeon) -> None:
    limit_rate(fake_neon, until=1, retry_after=7200)
    fake_neon.start("a", ends=0)
    with pytest.raises(RateLimitedError):
        await fake_neon.client.operations.get(PROJECT, "a")
    assert now() < 1
    await fake_neon.client.operations.get(PROJECT, "a")
    assert now() == pytest.approx(60, abs=0.1)
