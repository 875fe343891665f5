"""Code that uses the client, on a clock that jumps."""

import asyncio
import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from neonctl_async import NeonClient, RequestTimeoutError, RetryPolicy, Timeout, WaitTimeoutError
from neonctl_async.local import Durations, Fault, LocalControlPlane
from neonctl_async.testing import FakeClockLoop, loop_clock, real_time, real_time_hooks
from tests.support.clock import now
from tests.support.records import API_KEY

pytestmark = pytest.mark.virtual_time

A_MOMENT = 0.05
"""Real seconds, in which a clock that jumps gets far."""


async def test_an_hour_passes_in_no_time_and_to_the_second() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3600):
            await asyncio.Event().wait()
    assert now() == pytest.approx(3600, abs=1e-6)


async def test_operations_of_a_plane_on_the_loops_clock_end_in_step_with_it() -> None:
    durations = Durations(default=60.0)
    async with LocalControlPlane(clock=loop_clock(), durations=durations) as control_plane:
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            created = await neon.projects.create(name="slow")
            await neon.operations.wait(created, timeout=None)
    assert 2 * 60 <= now() <= 2 * 60 + 2 * 5.5


async def test_a_deadline_comes_when_it_is_due() -> None:
    durations = Durations(default=60.0)
    async with LocalControlPlane(clock=loop_clock(), durations=durations) as control_plane:
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            created = await neon.projects.create(name="slow")
            begun = now()
            with pytest.raises(WaitTimeoutError):
                await neon.operations.wait(created, timeout=20)
    assert now() - begun == pytest.approx(20, abs=1e-6)


async def test_the_delay_that_a_server_asks_for_takes_no_time() -> None:
    async with LocalControlPlane(clock=loop_clock()) as control_plane:
        control_plane.inject(Fault(status=503, headers={"Retry-After": "90"}, times=3))
        retry = RetryPolicy(deadline=1000)
        async with NeonClient(
            control_plane.api_key, base_url=control_plane.base_url, retry=retry
        ) as neon:
            await neon.projects.list().collect()
    assert 3 * 90 <= now() <= 3 * 90 + 1


async def test_the_time_of_day_of_client_and_plane_goes_along() -> None:
    async with LocalControlPlane(clock=loop_clock()) as control_plane:
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            project = (await neon.projects.create(name="p", wait=True)).project
            await asyncio.sleep(24 * 3600)
            async with neon.branches.ephemeral(project.id, ttl_seconds=600) as branch:
                assert branch.branch.expires_at is not None
                left = branch.branch.expires_at - loop_clock()()
    assert timedelta(seconds=500) < left < timedelta(seconds=601)


async def test_an_operation_that_is_tried_again_later_is_pending_until_then() -> None:
    async with LocalControlPlane(clock=loop_clock()) as control_plane:
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            await control_plane.fail_next("create_timeline", retry_after=120)
            await neon.projects.create(name="p", wait=150.0)
    assert 120 < now() < 150


async def test_the_clock_does_not_jump_while_a_thread_works() -> None:
    async with asyncio.timeout(3600):
        await asyncio.to_thread(time.sleep, A_MOMENT)
    assert now() < 3600


async def test_timers_are_not_held_up_by_a_thread_that_waits_for_them() -> None:
    loop = asyncio.get_running_loop()

    def ask() -> str:
        later = asyncio.run_coroutine_threadsafe(asyncio.sleep(A_MOMENT, "slept"), loop)
        return later.result()

    assert await asyncio.to_thread(ask) == "slept"


async def test_the_clock_jumps_again_once_nobody_waits_for_the_thread() -> None:
    stop = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(A_MOMENT):
            await asyncio.to_thread(stop.wait)
    await asyncio.sleep(3600)
    stop.set()


@pytest.mark.process
async def test_within_real_time_the_clock_waits_for_another_process() -> None:
    sleeper = await asyncio.create_subprocess_exec("sleep", str(A_MOMENT))
    with real_time():
        async with asyncio.timeout(3600):
            await sleeper.wait()
    assert now() < 3600


class SlowToAnswer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(A_MOMENT)
        body = b'{"regions": []}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # the client may be gone
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def background_loop() -> Iterator[str]:
    """A server that the loop knows nothing of."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowToAnswer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api/v2"
    server.shutdown()
    server.server_close()
    thread.join()


async def test_a_server_elsewhere_is_given_real_time_to_answer(background_loop: str) -> None:
    async with NeonClient(API_KEY, base_url=background_loop, hooks=[real_time_hooks()]) as neon:
        assert await neon.regions.list() == []
        await asyncio.sleep(3600)
        assert await neon.regions.list() == []
    assert 3600 < now() < 3610


async def test_without_it_the_clock_runs_ahead_of_the_answer(background_loop: str) -> None:
    bounds = Timeout(total=5.0)
    never = RetryPolicy.never()
    async with NeonClient(API_KEY, base_url=background_loop, timeout=bounds, retry=never) as neon:
        with pytest.raises(RequestTimeoutError):
            await neon.regions.list()


def test_on_a_real_loop_it_all_does_nothing() -> None:
    async def scenario() -> datetime:
        with real_time():
            return loop_clock()()

    before = datetime.now(UTC)
    assert before <= asyncio.run(scenario()) <= datetime.now(UTC)


def test_any_runner_takes_the_loop() -> None:
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        runner.run(asyncio.sleep(3600))
        assert runner.get_loop().time() == pytest.approx(3600)
