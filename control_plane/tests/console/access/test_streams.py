"""The open streams: bounded, and ended with their session."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from control_plane.tests.console.visitor import Visitor, visiting
from neonctl_local import ConnectionLimits, LocalControlPlane
from neonctl_local.console import site
from neonctl_local.console.access import streams as streams_module
from neonctl_local.console.access.headers import HEADERS
from neonctl_local.console.access.sessions import LIFETIME, Account, ConsoleSession, Sessions
from neonctl_local.console.access.streams import MAXIMUM, Streams
from neonctl_local.console.routes import PAGES, PageRoute
from neonctl_local.console.visits import Visit
from tests.support.until import until


@pytest.fixture
def sessions() -> Sessions[str]:
    return Sessions(lambda: 0.0)


@pytest.fixture
def session(sessions: Sessions[str]) -> ConsoleSession[str]:
    found = sessions.find(sessions.create(Account("tenant", "user")))
    assert found is not None
    return found


@pytest.fixture
def streams() -> Streams:
    return Streams(lambda: 0.0)


async def test_oldest_stream_ends_when_there_are_too_many(
    streams: Streams, session: ConsoleSession[str]
) -> None:
    with ExitStack() as stack:
        ends = [stack.enter_context(streams.open(session)) for _ in range(MAXIMUM)]
        assert not any(end.is_set() for end in ends)
        newest = stack.enter_context(streams.open(session))
        assert [end.is_set() for end in (*ends[:2], newest)] == [True, False, False]
        assert len(streams) == MAXIMUM
    assert len(streams) == 0


async def test_streams_end_with_their_session(
    streams: Streams, session: ConsoleSession[str]
) -> None:
    with streams.open(session) as end:
        session.end()
        assert end.is_set()
    with streams.open(session) as end:
        assert end.is_set()


async def test_streams_end_with_the_server(streams: Streams, session: ConsoleSession[str]) -> None:
    with streams.open(session) as end:
        streams.close()
        assert end.is_set()
    with streams.open(session) as end:
        assert end.is_set()


@pytest.mark.virtual_time
async def test_stream_ends_when_its_session_expires(session: ConsoleSession[str]) -> None:
    streams = Streams(lambda: 0.0)
    loop = asyncio.get_running_loop()
    started = loop.time()
    with streams.open(session) as end:
        await end.wait()
    assert loop.time() - started == pytest.approx(LIFETIME)


async def hold(visit: Visit) -> web.StreamResponse:
    """Serve a stream until it must end."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(visit.request)
    await response.write(b": open\n\n")
    await visit.stream_end.wait()
    return response


@pytest.fixture
def stream_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve a stream at ``/console/held``."""
    page = PageRoute("GET", "/held", hold, is_stream=True)
    monkeypatch.setattr(site, "PAGES", (*PAGES, page))


@asynccontextmanager
async def watching(visitor: Visitor) -> AsyncGenerator[aiohttp.StreamReader]:
    """Open the stream."""
    async with visitor.http.get(visitor.url("/held")) as response:
        assert response.status == 200
        assert HEADERS.items() <= dict(response.headers).items()
        assert response.headers["Cache-Control"] == "no-store"
        assert await response.content.readline() == b": open\n"
        assert await response.content.readline() == b"\n"
        yield response.content


@pytest.mark.usefixtures("stream_page")
async def test_stop_of_the_server_does_not_wait_for_streams() -> None:
    control_plane = LocalControlPlane(connections=ConnectionLimits(idle=0.05, send=0.05, body=0.05))
    await control_plane.start()
    async with visiting(control_plane) as visitor, watching(visitor) as stream:
        await asyncio.sleep(0.2)  # longer than each deadline
        stopped = asyncio.create_task(control_plane.stop())
        assert await stream.read() == b""
        await stopped


@pytest.mark.usefixtures("stream_page")
async def test_streams_end_with_the_sign_out(control_plane: LocalControlPlane) -> None:
    async with visiting(control_plane) as visitor, watching(visitor) as stream:
        assert (await visitor.request("HEAD", "/held")).status == 405
        await visitor.sign_out()
        assert await stream.read() == b""
        assert (await visitor.get("/held")).status == 401


@pytest.mark.usefixtures("stream_page")
async def test_oldest_of_too_many_pages_stops_watching(
    control_plane: LocalControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "MAXIMUM", 2)
    async with visiting(control_plane) as visitor, AsyncExitStack() as stack:
        first, *_ = [await stack.enter_async_context(watching(visitor)) for _ in range(3)]
        assert await first.read() == b""


@pytest.mark.usefixtures("stream_page")
async def test_page_that_is_closed_leaves_no_stream(control_plane: LocalControlPlane) -> None:
    async with visiting(control_plane) as visitor:
        for _ in range(5):
            async with watching(visitor):
                pass
        await until(lambda: control_plane.open_connections <= 1)
