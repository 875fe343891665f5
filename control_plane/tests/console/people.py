"""People of the tests: more than one can visit the console at the same time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Page, Visitor
from control_plane.tests.keys import member_key
from neonctl_local.storage.tables import MemberRole


@asynccontextmanager
async def signed_in(api: Client, key: str) -> AsyncGenerator[Visitor]:
    """Sign in with a personal key, in a browser of its own."""
    async with Visitor(api.control_plane) as visitor:
        page = await visitor.sign_in_with_key(key)
        assert page.status == 200, page.text
        yield visitor


@asynccontextmanager
async def member(api: Client, role: MemberRole = "member") -> AsyncGenerator[Visitor]:
    """Sign in a second member of the first organization: bea@example.com."""
    _, key = await member_key(api, role, "bea")
    async with signed_in(api, key) as visitor:
        yield visitor


def token_of(page: Page) -> str:
    """Return the key that a page shows."""
    (line,) = [line for line in page.html.splitlines() if "export NEON_API_KEY=" in line]
    return line.partition("NEON_API_KEY=")[2].partition("<")[0]
