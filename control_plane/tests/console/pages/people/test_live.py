"""Streams of the pages of keys and members."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.people import member
from control_plane.tests.console.visitor import Visitor
from control_plane.tests.keys import member_key
from neonctl_local.console.pages import streams

START = b"retry: 1000\n\n"
CHANGED = b"data: changed\n\n"


@asynccontextmanager
async def stream(visitor: Visitor, path: str) -> AsyncGenerator[aiohttp.ClientResponse]:
    """Open a stream, and read its first line."""
    async with visitor.http.get(visitor.url(f"{path}/changes")) as response:
        assert await response.content.readuntil(b"\n\n") == START
        yield response


async def next_event(response: aiohttp.ClientResponse) -> bytes:
    """Return the next event, or an empty text at the end of the stream."""
    async with asyncio.timeout(5):
        return (await response.content.readline()) + (await response.content.readline())


async def test_use_of_a_key_is_an_event(api: Client, visitor: Visitor) -> None:
    async with stream(visitor, "/account/keys") as response:
        await api.get("/users/me")
        assert await next_event(response) == CHANGED


async def test_key_that_is_created_in_the_console_is_an_event(visitor: Visitor) -> None:
    form = await visitor.get("/account/keys/new")
    async with stream(visitor, "/account/keys") as response:
        await visitor.post(form, "/account/keys/new", name="laptop")
        assert await next_event(response) == CHANGED


async def test_quick_changes_share_an_event(
    api: Client, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "GAP", 2.0)
    async with stream(visitor, f"{api.organization_path}/members") as response:
        await member_key(api, name="bea")
        assert await next_event(response) == CHANGED
        for name in ("cal", "dee", "eve"):
            await member_key(api, name=name)
            await asyncio.sleep(0.1)  # long enough for an event of its own
        assert await next_event(response) == CHANGED
        assert response.content.total_bytes == len(START + 2 * CHANGED)


async def test_new_member_is_an_event_for_the_members(api: Client) -> None:
    async with member(api) as bea:
        async with stream(bea, f"{api.organization_path}/members") as response:
            await member_key(api, name="cal")
            assert await next_event(response) == CHANGED


async def test_stream_of_a_removed_member_ends(api: Client) -> None:
    async with member(api) as bea:
        for page in ("members", "keys"):
            path = f"{api.organization_path}/{page}"
            members = (await api.get(f"{api.organization_path}/members"))["members"]
            (found,) = [one for one in members if one["user"]["email"] == "bea@example.com"]
            async with stream(bea, path) as response:
                await api.request(
                    "DELETE", f"{api.organization_path}/members/{found['member']['id']}"
                )
                while await next_event(response):
                    pass
            assert (await bea.get(f"{path}/changes")).status == 404
            control_plane = api.control_plane
            await control_plane.add_member(control_plane.org_id, found["member"]["user_id"])


@pytest.mark.parametrize("page", ["/account/keys", "members", "/requests", "project"])
async def test_stream_ends_when_the_key_of_the_sign_in_is_revoked(api: Client, page: str) -> None:
    project_id = (await api.project())["project"]["id"]
    paths = {"members": f"{api.organization_path}/members", "project": f"/projects/{project_id}"}
    created = await api.request("POST", "/api_keys", {"key_name": "lost"})
    async with Visitor(api.control_plane) as visitor:
        await visitor.sign_in_with_key(created["key"])
        async with stream(visitor, paths.get(page, page)) as response:
            await asyncio.sleep(0.2)  # a new watcher has observed the project
            await api.request("DELETE", f"/api_keys/{created['id']}")
            await api.branch(project_id)
            while await next_event(response):
                pass
