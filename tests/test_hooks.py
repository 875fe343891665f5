"""What hooks are told, what the log says, and that neither breaks a call."""

import asyncio
import logging
from functools import partial
from typing import Any

import msgspec
import pytest

from neonctl_async import (
    ConfigurationError,
    ConnectionLostError,
    Hooks,
    NeonClient,
    NotFoundError,
    RequestSent,
    ResponseReceived,
    RetryPlanned,
    RetryPolicy,
    StatusChanged,
    WaitEnded,
    WaitStarted,
    WaitTimeoutError,
)
from tests.support.platform import Platform
from tests.support.records import PROJECT, client_of, operation, ref
from tests.support.server import MisbehavingServer, drop, hang, http_response, in_turn

pytestmark = pytest.mark.virtual_time


class Recorder:
    """Writes down every event, oldest first."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.hooks = Hooks(**dict.fromkeys(Hooks.__struct_fields__, self.events.append))

    def of(self, *kinds: type[object]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]


async def test_each_request_is_told_with_its_answer() -> None:
    heard = Recorder()
    async with (
        MisbehavingServer(in_turn(http_response(404))) as server,
        client_of(server, hooks=[heard.hooks]) as neon,
    ):
        with pytest.raises(NotFoundError):
            await neon.request("GET", f"/projects/{PROJECT}", query={"search": "x"})
    sent, received = heard.events
    assert isinstance(sent, RequestSent)
    assert isinstance(received, ResponseReceived)
    assert (sent.method, sent.route) == ("GET", "GET /projects/{id}")
    assert sent.url.endswith(f"/api/v2/projects/{PROJECT}")
    assert sent.id == server.received[0].headers["x-request-id"]
    assert not sent.is_poll
    assert received.request is sent
    assert (received.status, received.error) == (404, None)


class Events(list[object]):
    """A hook that is false as long as it was told of nothing."""

    def __call__(self, event: object) -> None:
        self.append(event)


@pytest.mark.parametrize("name", ["on_request", "on_response"])
async def test_a_hook_that_is_false_is_told_like_any_other(name: str) -> None:
    heard = Events()
    async with (
        MisbehavingServer(in_turn(http_response(content={}))) as server,
        client_of(server, hooks=[Hooks(**{name: heard})]) as neon,
    ):
        await neon.request("GET", "/projects")
    assert len(heard) == 1


async def test_a_request_without_an_answer_is_told_with_its_failure() -> None:
    heard = Recorder()
    async with (
        MisbehavingServer(in_turn(drop())) as server,
        client_of(server, hooks=[heard.hooks]) as neon,
    ):
        with pytest.raises(ConnectionLostError) as caught:
            await neon.request("POST", "/projects")
    [received] = heard.of(ResponseReceived)
    assert (received.status, received.error) == (None, caught.value)


async def test_a_request_that_is_cancelled_is_told_as_ended() -> None:
    heard = Recorder()
    async with (
        MisbehavingServer(in_turn(hang)) as server,
        client_of(server, hooks=[heard.hooks]) as neon,
    ):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await neon.request("POST", "/projects")
    [received] = heard.of(ResponseReceived)
    assert (received.status, received.error) == (None, None)
    assert received.seconds == pytest.approx(3, abs=0.1)


async def test_each_further_try_is_told_before_it_is_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard = Recorder()
    responses = in_turn(
        http_response(503),
        http_response(429, headers={"Retry-After": "7"}),
        http_response(content={}),
    )
    async with (
        MisbehavingServer(responses) as server,
        client_of(server, hooks=[heard.hooks]) as neon,
    ):
        await neon.request("POST", "/projects")
    first, second = heard.of(RetryPlanned)
    assert (first.attempt, first.error.status) == (1, 503)
    assert (second.attempt, second.error.status) == (2, 429)
    assert second.delay >= 7
    kinds = [type(event) for event in heard.events]
    assert kinds == [
        *[RequestSent, ResponseReceived, RetryPlanned] * 2,
        RequestSent,
        ResponseReceived,
    ]
    warnings = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert [one.name for one in warnings] == ["neonctl_async.transport.retry"] * 2
    assert "503" in warnings[0].getMessage()


async def test_each_change_of_status_is_told_once_however_many_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="neonctl_async")
    heard = Recorder()
    platform = Platform()
    platform.start("a", states={0.0: "scheduling", 1.0: "running", 2.0: "finished"})
    async with platform.server, client_of(platform.server, hooks=[heard.hooks]) as neon:
        await asyncio.gather(*(neon.operations.wait(ref("a")) for _ in range(3)))
    changes = [(one.previous, one.operation.status) for one in heard.of(StatusChanged)]
    assert changes == [(None, "scheduling"), ("scheduling", "running"), ("running", "finished")]
    told = [one.getMessage() for one in caplog.records]
    assert told == [
        f"create_branch a in {PROJECT} is {status}"
        for status in ("scheduling", "running", "finished")
    ]
    assert {one.name for one in caplog.records} == {"neonctl_async.waiting.poller"}


async def test_a_status_never_heard_of_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="neonctl_async")
    platform = Platform()
    platform.start("a", states={0.0: "paused", 1.0: "finished"})
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(ref("a"))
    status = f"create_branch a in {PROJECT} is"
    assert [(one.levelno, one.getMessage()) for one in caplog.records] == [
        (logging.WARNING, f"{status} paused (unknown status, treated as pending)"),
        (logging.INFO, f"{status} finished"),
    ]


async def test_a_poll_that_failed_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    platform = Platform()
    platform.start("a", ends=1.0)
    faults = iter([http_response(503)])
    platform.fault = lambda _request: next(faults, None)
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(ref("a"))
    [warning] = caplog.records
    assert warning.levelno == logging.WARNING
    assert "503" in warning.getMessage()


async def test_each_wait_is_told_with_how_it_ended() -> None:
    heard = Recorder()
    platform = Platform()
    platform.start("a", ends=1.0)
    platform.start("b", ends=1.0, status="failed")
    platform.start("c", ends=100.0)
    async with platform.server, client_of(platform.server, hooks=[heard.hooks]) as neon:
        with pytest.raises(WaitTimeoutError) as caught:
            await neon.operations.wait([ref("a"), ref("b"), ref("c")], timeout=5)
    [started] = heard.of(WaitStarted)
    [ended] = heard.of(WaitEnded)
    assert started.operations == (ref("a"), ref("b"), ref("c"))
    assert started.timeout == 5
    assert ended.wait is started
    assert (ended.unsuccessful, ended.pending, ended.error) == (1, 1, caught.value)
    assert ended.seconds == pytest.approx(5, abs=0.1)
    assert all(one.is_poll for one in heard.of(RequestSent))


async def test_a_wait_that_is_left_is_told_without_an_error() -> None:
    heard = Recorder()
    platform = Platform()
    platform.start("a", ends=100.0)
    async with platform.server, client_of(platform.server, hooks=[heard.hooks]) as neon:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await neon.operations.wait(ref("a"))
    [ended] = heard.of(WaitEnded)
    assert (ended.pending, ended.error) == (1, None)


async def test_a_wait_that_is_cancelled_twice_is_told_once() -> None:
    heard = Recorder()
    platform = Platform()
    platform.start("a", ends=100.0)
    async with platform.server, client_of(platform.server, hooks=[heard.hooks]) as neon:
        waiting = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    assert len(heard.of(WaitEnded)) == 1


async def test_what_is_over_from_the_start_is_told_as_well() -> None:
    heard = Recorder()
    async with (
        MisbehavingServer(in_turn(hang)) as server,
        client_of(server, hooks=[heard.hooks]) as neon,
    ):
        await neon.operations.wait([operation("a", "finished"), operation("b", "skipped")])
    assert [type(event) for event in heard.events] == [WaitStarted, WaitEnded]


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError, TimeoutError])
async def test_no_hook_breaks_a_call_or_a_wait(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_event: object) -> None:
        raise error("a hook of the caller")

    heard = Recorder()
    failing = Hooks(**dict.fromkeys(Hooks.__struct_fields__, fail))
    platform = Platform()
    platform.start("a", states={0.0: "running", 1.0: "finished"})
    faults = iter([http_response(503)])
    platform.fault = lambda request: next(faults, None) if request.method == "GET" else None
    async with (
        platform.server,
        client_of(platform.server, hooks=[failing, heard.hooks]) as neon,
    ):
        assert (await neon.operations.get(PROJECT, "a")).status == "running"
        [done] = await neon.operations.wait(ref("a"))
    assert done.status == "finished"
    assert {type(event) for event in heard.events} == {
        RequestSent,
        ResponseReceived,
        RetryPlanned,
        StatusChanged,
        WaitStarted,
        WaitEnded,
    }
    failures = [one for one in caplog.records if one.name == "neonctl_async.transport.dispatcher"]
    assert len(failures) == len(heard.events)
    assert all(one.levelno == logging.ERROR and one.exc_info for one in failures)


async def coroutine(_event: object) -> None:
    """No plain function: nobody would await what it returns."""


class Asynchronous:
    """What is called like a function, but gives a coroutine."""

    async def __call__(self, _event: object) -> None:
        """Like the one above."""


@pytest.mark.parametrize("hook", [coroutine, partial(coroutine), Asynchronous(), 7, "print"])
@pytest.mark.parametrize("name", Hooks.__struct_fields__)
def test_a_hook_that_is_no_plain_function_is_refused(name: str, hook: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Hooks(**{name: hook})


async def test_requests_are_logged_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="neonctl_async")
    async with (
        MisbehavingServer(in_turn(http_response(content={}), drop())) as server,
        client_of(server, retry=RetryPolicy.never()) as neon,
    ):
        await neon.request("GET", "/projects")
        with pytest.raises(ConnectionLostError):
            await neon.request("GET", "/projects")
    answered, lost = [one.getMessage() for one in caplog.records]
    request_id = server.received[0].headers["x-request-id"]
    assert answered.startswith("GET http://127.0.0.1:")
    assert f"/projects: 200 (request {request_id}), after 0.0" in answered
    assert "the connection broke" in lost
    assert {one.levelno for one in caplog.records} == {logging.DEBUG}


@pytest.mark.parametrize("hooks", [[print], print, Hooks(), "hooks", [Hooks(), None]])
def test_hooks_that_are_no_sequence_of_hooks_are_refused(hooks: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"hooks is .*hooks=\[Hooks\("):
        NeonClient("key", hooks=hooks)


def test_events_show_what_they_tell() -> None:
    shown = repr(WaitStarted(operations=(ref("a"),), timeout=3.0))
    assert "a" in shown
    assert isinstance(msgspec.json.encode(WaitStarted(operations=(ref("a"),), timeout=3.0)), bytes)
