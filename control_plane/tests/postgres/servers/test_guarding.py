import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from neonctl_local.postgres.servers import guarding
from neonctl_local.postgres.servers.guarding import Guard
from tests.support.until import until

pytestmark = pytest.mark.postgres


@pytest.fixture
async def guard(tmp_path: Path) -> AsyncIterator[Guard]:
    guard = Guard(tmp_path, tmp_path / "temporary", [])
    await guard.start()
    yield guard
    await guard.stop()


async def test_guardian_ends_when_the_control_plane_stops_it(guard: Guard) -> None:
    pid = guard.pid
    assert pid is not None
    await guard.stop()
    assert guard.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    await guard.stop()


async def test_killed_guardian_is_replaced(guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    first = guard.pid
    assert first is not None
    with caplog.at_level(logging.WARNING, "neonctl_local"):
        os.kill(first, signal.SIGKILL)
        await until(lambda: guard.pid not in {first, None})
    assert "the guardian of the servers ended: status -9" in caplog.text


async def test_guardian_that_cannot_be_started_is_tried_again(
    guard: Guard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guarding, "_RESTART_DELAY", 0.01)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    first = guard.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: "cannot be started" in caplog.text)
    assert guard.pid is None
    monkeypatch.undo()
    await until(lambda: guard.pid is not None)


async def test_guardian_keeps_the_locks_of_the_control_plane(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    guard = Guard(tmp_path, tmp_path / "temporary", [writing])
    await guard.start()
    os.close(writing)
    closed = asyncio.create_task(asyncio.to_thread(os.read, reading, 1))
    done, _ = await asyncio.wait([closed], timeout=0.05)
    assert not done, "the guardian has it open"
    await guard.stop()
    assert await closed == b""
    os.close(reading)
