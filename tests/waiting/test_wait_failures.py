"""What becomes of a wait when polls fail, hang or lag behind, on a virtual clock."""

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
    RateBudget,
    RateLimitedError,
    WaitTimeoutError,
)
from neonctl_async.waiting.source import OperationSource
from tests.support.clock import now
from tests.support.platform import Platform
from tests.support.records import PROJECT, client_of, operation_json, ref
from tests.support.server import Respond, drop, hang, http_response, in_turn

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize(
    "fault",
    [
        http_response(408),
        http_response(423),
        http_response(429),
        http_response(500),
        http_response(502),
        http_response(503),
        http_response(520),
        http_response(200, body=b"<html>a proxy speaks</html>"),
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


def limited(until: float, retry_after: int, status: int = 429) -> Platform:
    """A platform that lets nobody in until a time of the loop, and says when to come again."""
    platform = Platform()
    refusal = http_response(status, headers={"Retry-After": str(retry_after)})
    platform.fault = lambda _request: refusal if now() < until else None
    return platform


async def test_the_platforms_retry_after_delays_the_next_poll() -> None:
    platform = limited(until=30, retry_after=40)
    platform.start("a", ends=1)
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(ref("a"))
    assert len(platform.server.received) == 2


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, AuthenticationError), (403, PermissionDeniedError), (404, NotFoundError)],
)
@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
async def test_answers_that_will_not_change_end_the_wait_after_one_request(
    status: int, error: type[APIError], ids: list[str]
) -> None:
    platform = Platform()
    platform.fault = lambda _request: http_response(status)
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(error) as caught:
            await neon.operations.wait([ref(id) for id in ids])
    assert caught.value.method == "GET"
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


async def test_a_list_that_lags_behind_takes_nothing_back() -> None:
    platform = Platform()
    platform.start("a", states={0: "scheduling", 1: "running", 30: "finished"})
    platform.start("b", ends=30)
    stale = http_response(
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
    responses = in_turn(hang, http_response(200, {"operation": operation_json("a", "finished")}))
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
        with pytest.raises(ClientClosedError, match=r"^the polling ended$"):
            await wait


async def test_a_429_that_asks_to_wait_slows_the_whole_client_down() -> None:
    platform = limited(until=1, retry_after=20)
    platform.start("a", ends=1)
    async with platform.server, client_of(platform.server) as neon:
        first = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(0.1)
        platform.start("b", ends=1, project_id="other-project-12345678")
        await neon.operations.wait(OperationRef(project_id="other-project-12345678", id="b"))
        await first
    assert len(platform.server.received) == 3


@pytest.mark.parametrize("status", [429, 503])
async def test_a_poll_that_is_told_to_come_back_tomorrow_comes_back_in_a_minute(
    status: int,
) -> None:
    platform = limited(until=1, retry_after=86400, status=status)
    platform.start("a", ends=1)
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(ref("a"), timeout=None)
        assert now() == pytest.approx(60, abs=1)
    assert len(platform.server.received) == 2


async def test_a_429_that_asks_for_hours_holds_the_client_up_for_a_minute_at_the_most() -> None:
    platform = limited(until=1, retry_after=7200)
    platform.start("a", ends=0)
    async with platform.server, client_of(platform.server) as neon:
        with pytest.raises(RateLimitedError):
            await neon.operations.get(PROJECT, "a")
        assert now() < 1
        await neon.operations.get(PROJECT, "a")
        assert now() == pytest.approx(60, abs=0.1)
