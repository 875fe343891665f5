"""Delivery of events to hooks."""

import asyncio
import logging

import pytest

from neonctl_async import (
    Hooks,
    RequestSent,
    ResponseReceived,
    RetryPlanned,
    StatusChanged,
    WaitEnded,
    WaitStarted,
)
from tests.support.event_recorder import EventRecorder
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of, ref
from tests.support.server import MisbehavingServer, http_response, in_sequence

pytestmark = pytest.mark.virtual_time


class FalsyHook(list[object]):
    """A hook that is false until its first event."""

    def __call__(self, event: object) -> None:
        self.append(event)


@pytest.mark.parametrize("name", ["on_request", "on_response"])
async def test_falsy_hook_is_called(name: str) -> None:
    hook = FalsyHook()
    async with (
        MisbehavingServer(in_sequence(http_response(content={}))) as server,
        client_of(server, hooks=[Hooks(**{name: hook})]) as neon,
    ):
        await neon.request("GET", "/projects")
    assert len(hook) == 1


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError, TimeoutError])
async def test_failing_hook_affects_no_call_and_no_wait(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_event: object) -> None:
        raise error("from a hook")

    recorder = EventRecorder()
    failing = Hooks(**dict.fromkeys(Hooks.__struct_fields__, fail))
    fake_neon = FakeNeon()
    fake_neon.start("a", states={0.0: "running", 1.0: "finished"})
    faults = iter([http_response(503)])
    fake_neon.fault = lambda request: next(faults, None) if request.method == "GET" else None
    async with (
        fake_neon.server,
        client_of(fake_neon.server, hooks=[failing, recorder.hooks]) as neon,
    ):
        assert (await neon.operations.get(PROJECT, "a")).status == "running"
        [done] = await neon.operations.wait(ref("a"))
    assert done.status == "finished"
    assert {type(event) for event in recorder.events} == {
        RequestSent,
        ResponseReceived,
        RetryPlanned,
        StatusChanged,
        WaitStarted,
        WaitEnded,
    }
    failures = [
        record for record in caplog.records if record.name == "neonctl_async.transport.dispatcher"
    ]
    assert len(failures) == len(recorder.events)
    assert all(record.levelno == logging.ERROR and record.exc_info for record in failures)
