"""Runs clients against the simulator on a fake clock: a minute takes about a second.

The client is the real one. Only its HTTP exchange is replaced by a call of the simulator in the
same process, which takes the round trip on the fake clock.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from unittest import mock
from urllib.parse import quote, urlencode

from multidict import CIMultiDict

from benchmarks.servers.control_plane import API, ControlPlane, Settings
from neonctl_async.testing import FakeClockLoop
from neonctl_async.transport.aiohttp_adapter import AiohttpAdapter
from neonctl_async.transport.protocol import Request, Response

T = TypeVar("T")

BASE_URL = f"http://127.0.0.1{API}"
"""The base URL of clients. No request is sent to this address."""
EPOCH = datetime(2026, 1, 1, microsecond=370_000, tzinfo=UTC)
"""The time of day at the start of each run. A load should not start on a whole second."""


class VirtualTimeLoop(FakeClockLoop):
    """A loop with a fake clock whose time of day is the same in each run."""

    def utc_now(self) -> datetime:
        """Return the time of day on the fake clock."""
        return EPOCH + timedelta(seconds=self.time())


def run(main: Callable[[ControlPlane], Awaitable[T]], settings: Settings, seed: int | str = 0) -> T:
    """Run ``main`` with a simulator, to which all clients are connected.

    The clients draw their random numbers from ``seed``.
    """

    async def run_connected() -> T:
        plane = ControlPlane(settings, asyncio.get_running_loop().time, EPOCH)
        with connected(plane):
            return await main(plane)

    random.seed(seed)
    with asyncio.Runner(debug=False, loop_factory=VirtualTimeLoop) as runner:
        return runner.run(run_connected())


@contextmanager
def connected(plane: ControlPlane) -> Generator[None]:
    """Send the requests of all clients to this simulator."""
    settings = plane.settings
    distances = random.Random(settings.round_trip)

    async def exchange(
        _adapter: AiohttpAdapter, request: Request[Any], *_args: object, **_options: object
    ) -> Response:
        jitter = settings.jitter * distances.uniform(-1.0, 1.0) if settings.jitter else 0.0
        one_way = settings.round_trip * (1 + jitter) / 2
        await asyncio.sleep(one_way)
        target = f"{API}{request.path}?{urlencode(request.query, quote_via=quote)}"
        reply = plane.respond(request.method, target, request.body or b"")
        await asyncio.sleep(one_way)
        return Response(reply.status, CIMultiDict(reply.headers), reply.body)

    with mock.patch.object(AiohttpAdapter, "exchange", exchange):
        yield
