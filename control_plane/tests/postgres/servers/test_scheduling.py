import asyncio
import logging
import threading
from contextlib import suppress

import pytest

from neonctl_local.postgres.servers.scheduling import Background, ClusterLock, in_thread
from tests.support.tasks import cancel


async def test_thread_returns_its_result_and_raises_its_error() -> None:
    assert await in_thread(max, 1, 2) == 2
    with pytest.raises(ValueError, match="invalid literal"):
        await in_thread(int, "x")


async def test_cancelled_caller_waits_until_the_thread_has_finished() -> None:
    started, release, finished = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        release.wait(10)
        finished.set()
        raise OSError("nobody reads this error")

    task = asyncio.create_task(in_thread(work))
    await asyncio.to_thread(started.wait, 10)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished.is_set()


class Holder:
    """A task that holds a lock until it is released."""

    def __init__(self, lock: ClusterLock, *, exclusive: bool) -> None:
        self.holds = False
        self._release = asyncio.Event()
        self._held = lock.exclusive() if exclusive else lock.shared()
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with self._held:
            self.holds = True
            await self._release.wait()
        self.holds = False

    async def release(self) -> None:
        self._release.set()
        await self.task


async def steps() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_readers_share_the_lock_and_a_writer_has_it_alone() -> None:
    lock = ClusterLock()
    first, second = Holder(lock, exclusive=False), Holder(lock, exclusive=False)
    await steps()
    writer = Holder(lock, exclusive=True)
    await steps()
    late = Holder(lock, exclusive=False)
    await steps()
    assert [first.holds, second.holds, writer.holds, late.holds] == [True, True, False, False]
    await first.release()
    await second.release()
    await steps()
    assert [writer.holds, late.holds] == [True, False], "waiters are served in order"
    await writer.release()
    await steps()
    assert late.holds
    assert not lock.free
    await late.release()
    assert lock.free


@pytest.mark.parametrize("exclusive", [False, True])
async def test_cancelled_waiter_leaves_the_queue(exclusive: bool) -> None:
    lock = ClusterLock()
    writer = Holder(lock, exclusive=True)
    await steps()
    waiting, next_one = Holder(lock, exclusive=exclusive), Holder(lock, exclusive=True)
    await steps()
    await cancel(waiting.task)
    await writer.release()
    await steps()
    assert next_one.holds
    await next_one.release()
    assert lock.free


@pytest.mark.parametrize("exclusive", [False, True])
async def test_waiter_that_is_cancelled_while_it_gets_the_lock_releases_it(exclusive: bool) -> None:
    lock = ClusterLock()
    writer = Holder(lock, exclusive=True)
    await steps()
    waiting = Holder(lock, exclusive=exclusive)
    await steps()
    releasing = asyncio.create_task(writer.release())
    while not writer.task.done():  # noqa: ASYNC110 - stops at the iteration of the loop that matters
        await asyncio.sleep(0)
    await cancel(waiting.task)
    await releasing
    assert lock.free


async def test_errors_of_background_work_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    background = Background()

    async def fail() -> None:
        raise ValueError("no space left")

    with caplog.at_level(logging.WARNING, "neonctl_local"), suppress(ValueError):
        await background.spawn(fail())
    await asyncio.sleep(0)
    assert "work in the background failed: no space left" in caplog.text


async def test_stop_cancels_background_work() -> None:
    background = Background()
    task = background.spawn(asyncio.sleep(60))
    await background.stop()
    assert task.cancelled()
