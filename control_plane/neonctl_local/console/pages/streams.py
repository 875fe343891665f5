"""Streams of server-sent events, which notify open pages of changes."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from aiohttp import web

from neonctl_local.console.operation_list import check_access
from neonctl_local.console.visits import Visit, read_person
from neonctl_local.errors import ApiError
from neonctl_local.events import first_of
from neonctl_local.storage.transactions import Transaction

HEARTBEAT: Final = 15.0
"""The seconds between the lines that keep a stream open and detect that a client has left."""
GAP: Final = 0.2
"""The shortest time between two events of a stream, in seconds."""
MOST_UNREAD: Final = 4096
"""The largest size of the write buffer, in bytes. If a client reads too slowly, its stream ends."""

_logger: Final = logging.getLogger(__name__)

_RETRY: Final = b"retry: 1000\n\n"
_CHANGED: Final = b"data: changed\n\n"
_ALIVE: Final = b":\n\n"


async def project_changes(visit: Visit) -> web.StreamResponse:
    """``GET /console/projects/{project_id}/changes``: an event for each change of a project."""
    project_id = visit.path["project_id"]

    def check(tx: Transaction) -> None:
        read_person(tx, visit.session.user_id, visit.session.key_id)
        check_access(tx, visit.principal, project_id)

    await visit.read(check)
    with visit.changes.watch(visit.state, project_id) as project:
        return await send_changes(visit, lambda: [project.changed], check)


async def send_changes(
    visit: Visit,
    next_change: Callable[[], Sequence[asyncio.Event]],
    check: Callable[[Transaction], None],
) -> web.StreamResponse:
    """Send an event for each change, until the stream must end or the client has left.

    ``next_change`` returns asyncio events, one of which is set at the next change. ``check`` raises
    ApiError if the person may no longer see the page. Changes in quick succession are sent as one
    event.
    """
    changed = next_change()
    headers = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(visit.request)
    await response.write(_RETRY)
    while await _is_wanted(visit, changed, check):
        if any(event.is_set() for event in changed):
            changed = next_change()
            await response.write(_CHANGED)
            await first_of(visit.stream_end, seconds=GAP)
        else:
            await response.write(_ALIVE)
    return response


async def _is_wanted(
    visit: Visit, changed: Sequence[asyncio.Event], check: Callable[[Transaction], None]
) -> bool:
    """Wait for a change or a heartbeat. Return False if the stream must end."""
    await first_of(*changed, visit.stream_end, seconds=HEARTBEAT)
    transport = visit.request.transport
    if visit.stream_end.is_set() or transport is None or transport.is_closing():
        return False
    if transport.get_write_buffer_size() > MOST_UNREAD:
        transport.abort()
        return False
    try:
        await visit.read(check)
    except ApiError:
        return False
    except Exception:
        # The response has started, so no page can report this. The browser connects again.
        _logger.exception("a stream of the console failed")
        return False
    return not visit.stream_end.is_set()
