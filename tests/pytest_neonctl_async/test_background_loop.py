"""The background loop runs what tests start, and outlives their event loops."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import pytest

from pytest_neonctl_async.background_loop import BackgroundLoop, run_background_loop


@pytest.fixture
def loop() -> Iterator[BackgroundLoop]:
    with run_background_loop() as loop:
        yield loop


async def current_thread() -> str:
    return threading.current_thread().name


async def test_coroutine_runs_in_another_thread_without_blocking_the_caller(
    loop: BackgroundLoop,
) -> None:
    assert await loop.run(current_thread()) != threading.current_thread().name


def test_caller_without_an_event_loop_blocks_for_the_result(loop: BackgroundLoop) -> None:
    assert loop.call(current_thread()) != threading.current_thread().name


async def test_cancelled_caller_cancels_the_coroutine(loop: BackgroundLoop) -> None:
    cancelled = threading.Event()

    async def sleep() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await loop.run(sleep())
    assert await asyncio.to_thread(cancelled.wait, 10)


def test_context_manager_exits_on_the_loop_and_sees_the_exception(loop: BackgroundLoop) -> None:
    seen: list[object] = []

    @asynccontextmanager
    async def manager() -> AsyncGenerator[str]:
        try:
            yield await current_thread()
        except ValueError as error:
            seen.extend((str(error), await current_thread()))
            raise

    with pytest.raises(ValueError, match="from the block"), loop.enter(manager()) as thread:
        raise ValueError("from the block")
    assert seen == ["from the block", thread]


def test_exit_cancels_remaining_tasks_and_stops_the_thread() -> None:
    async def start(cancelled: threading.Event) -> None:
        task = asyncio.create_task(asyncio.sleep(3600))
        task.add_done_callback(lambda task: cancelled.set() if task.cancelled() else None)

    before = threading.active_count()
    cancelled = threading.Event()
    with run_background_loop() as loop:
        loop.call(start(cancelled))
        assert threading.active_count() > before
    assert cancelled.is_set()
    assert threading.active_count() == before
