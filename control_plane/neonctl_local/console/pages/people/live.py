"""Streams for the pages of keys and members, which change with each write and each use of a key."""

import asyncio

from aiohttp import web

from neonctl_local.api.request import access
from neonctl_local.console.pages.streams import send_changes
from neonctl_local.console.visits import Visit, read_person
from neonctl_local.storage.transactions import Transaction


async def key_changes(visit: Visit) -> web.StreamResponse:
    """``GET .../keys/changes``: an event after each write and after each request with a key."""

    def next_change() -> list[asyncio.Event]:
        return [visit.state.database.changed, visit.state.history.changed]

    await visit.read(_check, visit)
    return await send_changes(visit, next_change, lambda tx: _check(tx, visit))


async def member_changes(visit: Visit) -> web.StreamResponse:
    """``GET .../members/changes``: an event after each write."""

    def next_change() -> list[asyncio.Event]:
        return [visit.state.database.changed]

    await visit.read(_check, visit)
    return await send_changes(visit, next_change, lambda tx: _check(tx, visit))


def _check(tx: Transaction, visit: Visit) -> None:
    """Raise ApiError if the person may no longer see the page."""
    read_person(tx, visit.session.user_id, visit.session.key_id)
    if org_id := visit.path.get("org_id"):
        access.organization_of(tx, visit.principal, org_id)
