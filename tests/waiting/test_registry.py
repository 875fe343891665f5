"""What a poller leaves behind when nobody needs it any more."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from neonctl_async import (
    NeonClient,
    NotFoundError,
    RateBudget,
    WaitTimeoutError,
)
from tests.support.clock import now
from tests.support.platform import Platform
from tests.support.records import API_KEY, client_of, ref
from tests.support.server import hang, http_response

pytestmark = pytest.mark.virtual_time


def polling() -> list[asyncio.Task[object]]:
    """The pollers' tasks that have not ended."""
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("poll ")]


@asynccontextmanager
async def silent_server() -> AsyncGenerator[tuple[str, asyncio.Event, asyncio.Event]]:
    """Its URL, whether it was asked anything, and whether the connection was closed on it."""
    asked, dropped = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        dropped.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked, dropped


async def test_the_last_wait_to_go_drops_the_look_under_way() -> None:
    async with (
        silent_server() as (url, asked, dropped),
        NeonClient(API_KEY, base_url=url, budget=RateBudget.unlimited()) as neon,
    ):
        waits = [asyncio.create_task(neon.operations.wait(ref("a"))) for _ in range(2)]
        await asked.wait()
        waits[0].cancel()
        await asyncio.sleep(1)
        assert not dropped.is_set()
        assert len(polling()) == 1
        waits[1].cancel()
        await asyncio.wait(waits)
        assert polling() == []
        await dropped.wait()
        assert now() == pytest.approx(1, abs=0.01)


async def test_a_wait_that_returns_has_seen_its_poller_off() -> None:
    platform = Platform()
    platform.start("a", ends=1)
    async with platform.server, client_of(platform.server) as neon:
        await neon.operations.wait(ref("a"))
        assert polling() == []


@pytest.mark.parametrize("end", ["task.cancel", "asyncio.timeout", "anyio", "deadline", "404"])
async def test_a_wait_that_raises_has_seen_its_poller_off(end: str) -> None:
    platform = Platform()
    platform.fault = lambda _request: http_response(404) if end == "404" else hang
    left: list[asyncio.Task[object]] | None = None

    async with platform.server, client_of(platform.server) as neon:

        async def wait() -> None:
            nonlocal left
            try:
                await neon.operations.wait(ref("a"), timeout=1 if end == "deadline" else 300)
            finally:
                left = polling()

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
        assert left == []
        assert now() <= 1.01
