import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from neonctl_async import NeonClient, NotFoundError, RateBudget, WaitTimeoutError
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import API_KEY, ref
from tests.support.server import hang, http_response

pytestmark = pytest.mark.virtual_time


def polling_tasks() -> list[asyncio.Task[object]]:
    """Return the running tasks of pollers."""
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("poll ")]


@asynccontextmanager
async def silent_server() -> AsyncGenerator[tuple[str, asyncio.Event, asyncio.Event]]:
    """Yield the URL of a server without responses, and events for a request and for its close."""
    requested, closed = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        requested.set()
        await reader.read()
        closed.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requested, closed


async def test_cancelling_the_last_wait_closes_the_connection_of_its_poll() -> None:
    async with (
        silent_server() as (url, requested, closed),
        NeonClient(API_KEY, base_url=url, budget=RateBudget.unlimited()) as neon,
    ):
        waits = [asyncio.create_task(neon.operations.wait(ref("a"))) for _ in range(2)]
        await requested.wait()
        waits[0].cancel()
        await asyncio.sleep(1)
        assert not closed.is_set()
        assert len(polling_tasks()) == 1
        waits[1].cancel()
        await asyncio.wait(waits)
        assert polling_tasks() == []
        await closed.wait()
        assert now() == pytest.approx(1, abs=0.01)


async def test_poller_is_stopped_before_a_wait_returns(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1)
    await fake_neon.client.operations.wait(ref("a"))
    assert polling_tasks() == []


@pytest.mark.parametrize("end", ["task.cancel", "asyncio.timeout", "anyio", "deadline", "404"])
async def test_poller_is_stopped_before_a_wait_raises(fake_neon: FakeNeon, end: str) -> None:
    fake_neon.fault = lambda _request: http_response(404) if end == "404" else hang
    tasks_after_wait: list[asyncio.Task[object]] | None = None

    async def wait() -> None:
        nonlocal tasks_after_wait
        try:
            await fake_neon.client.operations.wait(
                ref("a"), timeout=1 if end == "deadline" else 300
            )
        finally:
            tasks_after_wait = polling_tasks()

    match end:
        case "task.cancel":
            task = asyncio.create_task(wait())
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        case "asyncio.timeout":
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await wait()
        case "anyio":
            with anyio.move_on_after(1):
                await wait()
        case "deadline":
            with pytest.raises(WaitTimeoutError):
                await wait()
        case _:
            with pytest.raises(NotFoundError):
                await wait()
    assert tasks_after_wait == []
    assert now() <= 1.01
