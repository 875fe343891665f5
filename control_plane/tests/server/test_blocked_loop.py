"""A client that blocks the event loop of its server is reported."""

import asyncio
import socket
import time
import warnings
from functools import partial
from urllib.parse import urlsplit

import pytest

from neonctl_local import LocalControlPlane
from neonctl_local.server.blocked_loop import BlockedLoopWatch

MESSAGE = r"this line blocks its event loop\. Call blocking code with asyncio\.to_thread"


@pytest.fixture(autouse=True, scope="module")
def fail_on_blocked_loop() -> None:
    """Let these tests block their loop."""


def block(seconds: float) -> None:
    time.sleep(seconds)


def block_until_warned(warned: pytest.WarningsRecorder) -> None:
    """Block the event loop, as a driver without asyncio does that waits for a response."""
    while not warned.list:
        block(0.001)


async def test_line_that_blocks_is_reported() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    watch = BlockedLoopWatch([listening], seconds=0.01)
    watch.start()
    with listening, socket.create_connection(listening.getsockname()):
        with pytest.warns(RuntimeWarning, match=MESSAGE) as warned:
            block_until_warned(warned)
        watch.close()
    assert [one.filename for one in warned] == [__file__]


async def test_blocking_client_of_a_control_plane_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick = partial(BlockedLoopWatch, seconds=0.01)
    monkeypatch.setattr("neonctl_local.control_plane.BlockedLoopWatch", quick)
    async with LocalControlPlane() as control_plane:
        url = urlsplit(control_plane.base_url)
        with socket.create_connection((url.hostname, url.port)):
            with pytest.warns(RuntimeWarning, match=MESSAGE) as warned:
                block_until_warned(warned)


async def test_loop_without_waiting_clients_may_be_blocked() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    watch = BlockedLoopWatch([listening], seconds=0.001)
    watch.start()
    with warnings.catch_warnings(record=True) as warned:
        block(0.1)
    watch.close()
    listening.close()
    assert warned == []


@pytest.mark.long
async def test_client_that_waits_for_a_running_loop_is_not_reported() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    watch = BlockedLoopWatch([listening], seconds=1)
    watch.start()
    with warnings.catch_warnings(record=True) as warned:
        with listening, socket.create_connection(listening.getsockname()):
            await asyncio.sleep(2.5)
            watch.close()
    assert warned == []
