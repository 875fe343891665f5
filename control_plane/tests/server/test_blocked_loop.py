"""A client that blocks the event loop of its server is reported."""

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

import pytest

from neonctl_local import LocalControlPlane
from neonctl_local.server import blocked_loop
from neonctl_local.server.blocked_loop import BlockedLoopWatch

LOGGER = logging.getLogger(blocked_loop.__name__)


class Report(logging.Handler):
    """Sets an event at the first warning, for a test that blocks its event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.is_logged = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - a name of logging
        self.is_logged.set()


@pytest.fixture(autouse=True, scope="module")
def fail_on_blocked_loop() -> None:
    """Let these tests block their loop."""


@pytest.fixture
def report() -> Iterator[Report]:
    report = Report()
    LOGGER.addHandler(report)
    yield report
    LOGGER.removeHandler(report)


def block_until(report: Report) -> None:
    """Block the event loop, as a driver without asyncio does that waits for a response."""
    assert report.is_logged.wait(15)


async def test_blocked_loop_is_reported_with_the_line_that_blocks(
    report: Report, caplog: pytest.LogCaptureFixture
) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    watch = BlockedLoopWatch([listening], seconds=0.01)
    watch.start()
    with listening, socket.create_connection(listening.getsockname()):
        block_until(report)
        watch.close()
    [message] = caplog.messages
    assert f"event loop is blocked in block_until, {__file__}:" in message
    assert "Call blocking code with asyncio.to_thread()" in message


async def test_blocking_client_of_a_control_plane_is_reported(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = partial(BlockedLoopWatch, seconds=0.01)
    monkeypatch.setattr("neonctl_local.control_plane.BlockedLoopWatch", quick)
    async with LocalControlPlane() as control_plane:
        url = urlsplit(control_plane.base_url)
        with socket.create_connection((url.hostname, url.port)):
            block_until(report)


async def test_loop_without_waiting_clients_may_be_blocked(report: Report) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    watch = BlockedLoopWatch([listening], seconds=0.001)
    watch.start()
    assert not report.is_logged.wait(0.1)
    watch.close()
    listening.close()


@pytest.mark.long
async def test_client_that_waits_for_a_running_loop_is_not_reported(report: Report) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    watch = BlockedLoopWatch([listening], seconds=1)
    watch.start()
    with listening, socket.create_connection(listening.getsockname()):
        await asyncio.sleep(2.5)
        watch.close()
    assert not report.is_logged.is_set()
