"""Code that uses the client runs on a loop whose clock jumps to the next timer."""

import asyncio
import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from neonctl_async import NeonClient, RequestTimeoutError, RetryPolicy, Timeout, WaitTimeoutError
from neonctl_async.testing import FakeClockLoop, loop_clock, real_time, real_time_hooks
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.support.clock import now
from tests.support.records import API_KEY

pytestmark = pytest.mark.virtual_time

REAL_SECONDS = 0.05
"""A short time, in which a clock that jumps would pass an hour."""


async def test_timeout_of_an_hour_expires_exactly_and_without_waiting() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3600):
            await asyncio.Event().wait()
    assert now() == pytest.approx(3600, abs=1e-6)


@pytest.mark.control_plane(durations=Durations(default=60.0))
async def test_operations_of_a_server_on_the_loop_clock_take_fake_time(neon: NeonClient) -> None:
    created = await neon.projects.create(name="slow")
    await neon.operations.wait(created, timeout=None)
    assert 2 * 60 <= now() <= 2 * 60 + 2 * 5.5


@pytest.mark.control_plane(durations=Durations(default=60.0))
async def test_wait_raises_at_its_timeout_on_the_fake_clock(neon: NeonClient) -> None:
    created = await neon.projects.create(name="slow")
    started_at = now()
    with pytest.raises(WaitTimeoutError):
        await neon.operations.wait(created, timeout=20)
    assert now() - started_at == pytest.approx(20, abs=1e-6)


async def test_delays_of_retry_after_take_fake_time(control_plane: LocalControlPlane) -> None:
    control_plane.inject(Fault(status=503, headers={"Retry-After": "90"}, times=3))
    retry = RetryPolicy(deadline=1000)
    url = control_plane.base_url
    async with NeonClient(control_plane.api_key, base_url=url, retry=retry) as neon:
        await neon.projects.list().collect()
    assert 3 * 90 <= now() <= 3 * 90 + 1


async def test_client_and_server_read_the_time_of_day_from_the_fake_clock(neon: NeonClient) -> None:
    project = (await neon.projects.create(name="p", wait=True)).project
    await asyncio.sleep(24 * 3600)
    async with neon.branches.ephemeral(project.id, ttl_seconds=600) as branch:
        assert branch.branch.expires_at is not None
        left = branch.branch.expires_at - loop_clock()()
    assert timedelta(seconds=500) < left < timedelta(seconds=601)


async def test_time_of_day_is_never_ahead_of_the_clock() -> None:
    loop = FakeClockLoop()
    try:
        started = loop.utc_now()
        await asyncio.to_thread(loop.run_until_complete, asyncio.sleep(1 - 4e-8))
        assert loop.utc_now() - started < timedelta(seconds=1)
    finally:
        loop.close()


async def test_operation_with_a_retry_is_pending_until_its_retry_at(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    await control_plane.fail_next("create_timeline", retry_after=120)
    await neon.projects.create(name="p", wait=150.0)
    assert 120 < now() < 150


async def test_clock_does_not_jump_while_a_thread_works() -> None:
    async with asyncio.timeout(3600):
        await asyncio.to_thread(time.sleep, REAL_SECONDS)
    assert now() < 3600


async def test_timer_runs_while_a_thread_waits_for_it() -> None:
    loop = asyncio.get_running_loop()

    def sleep_on_the_loop() -> str:
        slept = asyncio.run_coroutine_threadsafe(asyncio.sleep(REAL_SECONDS, "slept"), loop)
        return slept.result()

    assert await asyncio.to_thread(sleep_on_the_loop) == "slept"


async def test_clock_jumps_again_after_the_wait_for_a_thread_is_cancelled() -> None:
    stop = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(REAL_SECONDS):
            await asyncio.to_thread(stop.wait)
    await asyncio.sleep(3600)
    stop.set()


@pytest.mark.process
async def test_clock_does_not_jump_inside_real_time() -> None:
    sleeper = await asyncio.create_subprocess_exec("sleep", str(REAL_SECONDS))
    with real_time():
        async with asyncio.timeout(3600):
            await sleeper.wait()
    assert now() < 3600


class SlowHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(REAL_SECONDS)
        body = b'{"regions": []}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # the client may be gone
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write no log line."""


@pytest.fixture
def slow_server() -> Iterator[str]:
    """A server in another thread. Its sockets are not on the loop of the test."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowHandler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api/v2"
    server.shutdown()
    server.server_close()
    thread.join()


async def test_clock_runs_in_real_time_during_requests_with_the_hooks(slow_server: str) -> None:
    async with NeonClient(API_KEY, base_url=slow_server, hooks=[real_time_hooks()]) as neon:
        assert await neon.regions.list() == []
        await asyncio.sleep(3600)
        assert await neon.regions.list() == []
    assert 3600 < now() < 3610


async def test_request_without_the_hooks_times_out(slow_server: str) -> None:
    timeout = Timeout(total=5.0)
    never = RetryPolicy.never()
    async with NeonClient(API_KEY, base_url=slow_server, timeout=timeout, retry=never) as neon:
        with pytest.raises(RequestTimeoutError):
            await neon.regions.list()


def test_real_time_and_loop_clock_work_on_other_loops() -> None:
    async def scenario() -> datetime:
        with real_time():
            return loop_clock()()

    before = datetime.now(UTC)
    assert before <= asyncio.run(scenario()) <= datetime.now(UTC)


def test_runner_accepts_the_loop_as_a_factory() -> None:
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        runner.run(asyncio.sleep(3600))
        assert runner.get_loop().time() == pytest.approx(3600)
