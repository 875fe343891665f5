"""Events passed to hooks, and log messages."""

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
from tests.support.event_recorder import EventRecorder
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of, operation, ref, responding
from tests.support.server import OK, drop, hang, http_response

pytestmark = pytest.mark.virtual_time


async def test_each_request_and_its_response_are_reported() -> None:
    recorder = EventRecorder()
    async with responding(http_response(404), hooks=[recorder.hooks]) as (server, neon):
        with pytest.raises(NotFoundError):
            await neon.request("GET", f"/projects/{PROJECT}", query={"search": "x"})
    sent, received = recorder.events
    assert isinstance(sent, RequestSent)
    assert isinstance(received, ResponseReceived)
    assert (sent.method, sent.route) == ("GET", "GET /projects/{id}")
    assert sent.url.endswith(f"/api/v2/projects/{PROJECT}")
    assert sent.id == server.received[0].headers["x-request-id"]
    assert not sent.is_poll
    assert received.request is sent
    assert (received.status, received.error) == (404, None)


async def test_request_without_a_response_is_reported_with_its_error() -> None:
    recorder = EventRecorder()
    async with responding(drop(), hooks=[recorder.hooks]) as (_, neon):
        with pytest.raises(ConnectionLostError) as caught:
            await neon.request("POST", "/projects")
    [received] = recorder.of(ResponseReceived)
    assert (received.status, received.error) == (None, caught.value)


async def test_cancelled_request_is_reported_without_status_and_error() -> None:
    recorder = EventRecorder()
    async with responding(hang, hooks=[recorder.hooks]) as (_, neon):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await neon.request("POST", "/projects")
    [received] = recorder.of(ResponseReceived)
    assert (received.status, received.error) == (None, None)
    assert received.seconds == pytest.approx(3, abs=0.1)


async def test_each_retry_is_reported_before_it_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    recorder = EventRecorder()
    responses = (http_response(503), http_response(429, headers={"Retry-After": "7"}), OK)
    async with responding(*responses, hooks=[recorder.hooks]) as (_, neon):
        await neon.request("POST", "/projects")
    first, second = recorder.of(RetryPlanned)
    assert (first.attempt, first.error.status) == (1, 503)
    assert (second.attempt, second.error.status) == (2, 429)
    assert second.delay >= 7
    kinds = [type(event) for event in recorder.events]
    retried = [RequestSent, ResponseReceived, RetryPlanned]
    assert kinds == [*retried, *retried, RequestSent, ResponseReceived]
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    loggers = ["neonctl_async.transport.retry", "neonctl_async.transport.budget"]
    assert [record.name for record in warnings] == loggers
    assert "503" in warnings[0].getMessage()


async def test_each_status_change_is_reported_once_to_concurrent_waits(
    fake_neon: FakeNeon, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="neonctl_async")
    recorder = EventRecorder()
    fake_neon.start("a", states={0.0: "scheduling", 1.0: "running", 2.0: "finished"})
    async with client_of(fake_neon, hooks=[recorder.hooks]) as neon:
        await asyncio.gather(*(neon.operations.wait(ref("a")) for _ in range(3)))
    changes = [(change.previous, change.operation.status) for change in recorder.of(StatusChanged)]
    assert changes == [(None, "scheduling"), ("scheduling", "running"), ("running", "finished")]
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        f"create_branch a in {PROJECT} is {status}"
        for status in ("scheduling", "running", "finished")
    ]
    loggers = {record.name for record in caplog.records}
    assert loggers == {"neonctl_async.waiting.project_operations"}


async def test_unknown_status_is_logged_as_a_warning(
    fake_neon: FakeNeon, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="neonctl_async")
    fake_neon.start("a", states={0.0: "paused", 1.0: "finished"})
    await fake_neon.client.operations.wait(ref("a"))
    status = f"create_branch a in {PROJECT} is"
    assert [(one.levelno, one.getMessage()) for one in caplog.records] == [
        (logging.WARNING, f"{status} paused (unknown status, treated as pending)"),
        (logging.INFO, f"{status} finished"),
    ]


async def test_failed_poll_is_logged_as_a_warning(
    fake_neon: FakeNeon, caplog: pytest.LogCaptureFixture
) -> None:
    fake_neon.start("a", ends=1.0)
    faults = iter([http_response(503)])
    fake_neon.fault = lambda _request: next(faults, None)
    await fake_neon.client.operations.wait(ref("a"))
    [warning] = caplog.records
    assert warning.levelno == logging.WARNING
    assert "503" in warning.getMessage()


async def test_each_wait_is_reported_with_its_outcome(fake_neon: FakeNeon) -> None:
    recorder = EventRecorder()
    fake_neon.start("a", ends=1.0)
    fake_neon.start("b", ends=1.0, status="failed")
    fake_neon.start("c", ends=100.0)
    async with client_of(fake_neon, hooks=[recorder.hooks]) as neon:
        with pytest.raises(WaitTimeoutError) as caught:
            await neon.operations.wait([ref("a"), ref("b"), ref("c")], timeout=5)
    [started] = recorder.of(WaitStarted)
    [ended] = recorder.of(WaitEnded)
    assert started.operations == (ref("a"), ref("b"), ref("c"))
    assert started.timeout == 5
    assert ended.wait is started
    assert (ended.unsuccessful, ended.pending, ended.error) == (1, 1, caught.value)
    assert ended.seconds == pytest.approx(5, abs=0.1)
    assert all(request.is_poll for request in recorder.of(RequestSent))


async def test_cancelled_wait_is_reported_without_an_error(fake_neon: FakeNeon) -> None:
    recorder = EventRecorder()
    fake_neon.start("a", ends=100.0)
    async with client_of(fake_neon, hooks=[recorder.hooks]) as neon:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await neon.operations.wait(ref("a"))
    [ended] = recorder.of(WaitEnded)
    assert (ended.pending, ended.error) == (1, None)


async def test_wait_that_is_cancelled_twice_is_reported_once(fake_neon: FakeNeon) -> None:
    recorder = EventRecorder()
    fake_neon.start("a", ends=100.0)
    async with client_of(fake_neon, hooks=[recorder.hooks]) as neon:
        waiting = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    assert len(recorder.of(WaitEnded)) == 1


async def test_wait_for_finished_operations_is_reported() -> None:
    recorder = EventRecorder()
    async with responding(hang, hooks=[recorder.hooks]) as (_, neon):
        await neon.operations.wait([operation("a", "finished"), operation("b", "skipped")])
    assert [type(event) for event in recorder.events] == [WaitStarted, WaitEnded]


async def coroutine(_event: object) -> None:
    """A coroutine function, which a hook must not be."""


class AsyncCallable:
    """An object whose call returns a coroutine."""

    async def __call__(self, _event: object) -> None:
        """Return a coroutine."""


@pytest.mark.parametrize("hook", [coroutine, partial(coroutine), AsyncCallable(), 7, "print"])
@pytest.mark.parametrize("name", Hooks.__struct_fields__)
def test_hook_that_is_not_a_plain_function_is_refused(name: str, hook: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Hooks(**{name: hook})


async def test_requests_are_logged_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="neonctl_async")
    async with responding(OK, drop(), retry=RetryPolicy.never()) as (server, neon):
        await neon.request("GET", "/projects")
        with pytest.raises(ConnectionLostError):
            await neon.request("GET", "/projects")
    successful, lost = [record.getMessage() for record in caplog.records]
    request_id = server.received[0].headers["x-request-id"]
    assert successful.startswith("GET http://127.0.0.1:")
    assert f"/projects: 200 (request {request_id}), after 0.0" in successful
    assert "the connection broke" in lost
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


@pytest.mark.parametrize("hooks", [[print], print, Hooks(), "hooks", [Hooks(), None]])
def test_hooks_argument_that_is_not_a_sequence_of_hooks_is_refused(hooks: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"hooks is .*hooks=\[Hooks\("):
        NeonClient("key", hooks=hooks)


def test_events_have_a_repr_and_encode_as_json() -> None:
    shown = repr(WaitStarted(operations=(ref("a"),), timeout=3.0))
    assert "a" in shown
    assert isinstance(msgspec.json.encode(WaitStarted(operations=(ref("a"),), timeout=3.0)), bytes)
