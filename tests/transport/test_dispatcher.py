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
from tests.support.records import PROJECT, client_of, ref, responding
from tests.support.server import OK, http_response

pytestmark = pytest.mark.virtual_time


class FalsyHook(list[object]):
    """A hook that is false until its first event."""

    def __call__(self, event: object) -> None:
        self.append(event)


@pytest.mark.parametrize("name", ["on_request", "on_response"])
async def test_falsy_hook_is_called(name: str) -> None:
    hook = FalsyHook()
    async with responding(OK, hooks=[Hooks(**{name: hook})]) as (_, neon):
        await neon.request("GET", "/projects")
    assert len(hook) == 1


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError, TimeoutError])
async def test_failing_hook_affects_no_call_and_no_wait(
    fake_neon: FakeNeon, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_event: object) -> None:
        raise error("from a hook")

    recorder = EventRecorder()
    failing = Hooks(**dict.fromkeys(Hooks.__struct_fields__, fail))
    fake_neon.start("a", states={0.0: "running", 1.0: "finished"})
    faults = iter([http_response(503)])
    fake_neon.fault = lambda request: next(faults, None) if request.method == "GET" else None
    async with client_of(fake_neon, hooks=[failing, recorder.hooks]) as neon:
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
