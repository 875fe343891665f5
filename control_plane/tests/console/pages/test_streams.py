"""Streams of events: changes, comments, and the end with the session or the server."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Visitor, visiting
from neonctl_local import Durations, LocalControlPlane
from neonctl_local.console.changes import GAP
from neonctl_local.console.pages import streams

DURATION = 0.3


@pytest.fixture
async def api() -> AsyncIterator[Client]:
    """A client of a local control plane on the clock of the machine."""
    durations = Durations(default=0, by_action={"create_branch": DURATION})
    async with LocalControlPlane(durations=durations) as control_plane:
        async with Client(control_plane) as api:
            yield api


@pytest.fixture
async def project_id(api: Client) -> str:
    """A project whose operations have finished."""
    return str((await api.project())["project"]["id"])


@asynccontextmanager
async def stream(visitor: Visitor, project_id: str) -> AsyncGenerator[aiohttp.ClientResponse]:
    """Open the stream of a project, and read its first line."""
    url = visitor.url(f"/projects/{project_id}/changes")
    async with visitor.http.get(url) as response:
        assert response.status == 200
        assert await response.content.readuntil(b"\n\n") == b"retry: 1000\n\n"
        yield response


async def next_event(response: aiohttp.ClientResponse) -> bytes:
    """Return the next event, or an empty text at the end of the stream."""
    async with asyncio.timeout(5):
        try:
            return await response.content.readuntil(b"\n\n")
        except asyncio.IncompleteReadError:
            return b""


async def test_each_step_of_an_operation_is_an_event(
    visitor: Visitor, api: Client, project_id: str
) -> None:
    async with stream(visitor, project_id) as response:
        await asyncio.sleep(2 * GAP)
        await api.branch(project_id, name="preview")
        events = [await next_event(response) for _ in range(2)]
        assert events == [b"data: changed\n\n"] * 2
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2 * DURATION):
                await response.content.readany()


async def test_headers_of_a_stream(visitor: Visitor, project_id: str) -> None:
    async with stream(visitor, project_id) as response:
        assert response.content_type == "text/event-stream"
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Accel-Buffering"] == "no"
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]


async def test_quiet_stream_is_kept_open_by_comments(
    visitor: Visitor, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT", 0.05)
    async with stream(visitor, project_id) as response:
        assert [await next_event(response) for _ in range(3)] == [b":\n\n"] * 3


async def test_streams_end_when_the_server_stops(visitor: Visitor, api: Client) -> None:
    project_id = (await api.project())["project"]["id"]
    async with stream(visitor, project_id) as response:
        await api.control_plane.stop()
        assert not await next_event(response)  # the server did not have to cut it off


async def test_stream_ends_with_its_session(visitor: Visitor, project_id: str) -> None:
    async with stream(visitor, project_id) as response:
        await visitor.sign_out()
        assert not await next_event(response)


async def test_stream_ends_when_the_person_loses_access(api: Client, project_id: str) -> None:
    user_id = await api.control_plane.create_user("Sam", "sam@example.com")
    await api.control_plane.add_member(api.control_plane.org_id, user_id)
    key = await api.control_plane.create_api_key("sam", user_id=user_id)
    async with Visitor(api.control_plane) as sam:
        await sam.sign_in_with_key(key)
        async with stream(sam, project_id) as response:
            await asyncio.sleep(0.2)
            await api.control_plane.remove_member(api.control_plane.org_id, user_id)
            await api.branch(project_id, name="preview")
            assert not await next_event(response)
        page = await sam.get(f"/projects/{project_id}/changes")
        assert page.status == 404


async def test_stream_ends_at_an_error(
    visitor: Visitor, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stream(visitor, project_id) as response:

        def fail(*_: object) -> None:
            raise OSError("disk I/O error")

        monkeypatch.setattr(streams, "check_access", fail)
        path = f"/projects/{project_id}/rename"
        await visitor.post(await visitor.get(path), path, name="new")
        assert not await next_event(response)


async def test_stream_of_a_missing_project_is_not_found(visitor: Visitor) -> None:
    assert (await visitor.get("/projects/no-project-1/changes")).status == 404


async def test_project_is_watched_until_the_client_has_left(
    api: Client, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT", 0.05)
    console = api.control_plane._console  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no page shows its watchers
    assert console is not None
    async with visiting(api.control_plane) as first, visiting(api.control_plane) as second:
        watched = console._site._changes  # type: ignore[union-attr]  # noqa: SLF001 # pyright: ignore - no page shows its watchers
        async with stream(first, project_id), stream(second, project_id):
            assert len(watched) == 1
        async with asyncio.timeout(5):
            while len(watched):  # noqa: ASYNC110 - nothing else waits for the end of a watcher
                await asyncio.sleep(0.02)


async def test_client_that_does_not_read_is_disconnected(
    visitor: Visitor, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT", 0.01)
    monkeypatch.setattr(streams, "MOST_UNREAD", -1)
    async with stream(visitor, project_id) as response:
        with pytest.raises(aiohttp.ClientError):
            await next_event(response)
