"""The latest API requests, and the usage of the rate limits."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from neonctl_local.clock import in_seconds
from neonctl_local.console import instruments
from neonctl_local.console.fields import natural_number
from neonctl_local.console.pages.streams import send_changes
from neonctl_local.console.visits import Visit, read_person
from neonctl_local.server.application import CONSOLE_PATH
from neonctl_local.server.request_history import AnsweredRequest
from neonctl_local.storage.transactions import Transaction

PAGE_ROWS: Final = 100
"""The largest number of requests on a page."""

STATUSES: Final = (
    ("", "All"),
    ("2", "2xx: success"),
    ("4", "4xx: error of the client"),
    ("429", "429: too many requests"),
    ("5", "5xx: error of the server"),
    ("0", "Closed without a response"),
)
METHODS: Final = ("GET", "POST", "PATCH", "PUT", "DELETE")

_REFRESH_SECONDS: Final = 5.0
"""The seconds until the usage of the limits is read again, because old requests stop counting."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A request, as the page shows it."""

    number: int
    at: str
    method: str
    path: str
    status: int
    duration: str
    key: str
    has_fault: bool


async def show(visit: Visit) -> web.StreamResponse:
    """``GET /console/requests``."""
    status = _choice(visit.query.get("status", ""), [value for value, _ in STATUSES])
    method = _choice(visit.query.get("method", ""), METHODS)
    before = natural_number(visit.query.get("before", ""))
    visible = await instruments.visible_requests(visit)
    found = [
        request
        for request in visible
        if str(request.status).startswith(status)
        and request.method.startswith(method)
        and (before is None or request.number < before)
    ]
    shown = found[:PAGE_ROWS]
    keys = {request.key_id for request in shown if request.key_id is not None}
    names = await visit.read(instruments.read_key_names, sorted(keys))
    filters = {"status": status, "method": method}
    return visit.page(
        "requests.html",
        rows=[_row(request, names) for request in shown],
        statuses=STATUSES,
        methods=METHODS,
        filters=filters,
        is_filtered=bool(status or method),
        has_any=bool(visible),
        newer="" if before is None else _url(filters),
        older=_url(filters, before=shown[-1].number) if len(found) > PAGE_ROWS else "",
        accounts=instruments.usages(visit),
        is_enforced=visit.state.enforces_limits,
    )


async def show_limits(visit: Visit) -> web.StreamResponse:
    """``GET /console/limits``."""
    return visit.page(
        "limits.html",
        accounts=instruments.usages(visit),
        is_enforced=visit.state.enforces_limits,
    )


async def changes(visit: Visit) -> web.StreamResponse:
    """``GET /console/requests/changes``: an event soon after each request.

    When a request becomes older than a minute, the usage of the limits drops, but nothing sends an
    event. So events continue until there has been no request for a minute.
    """

    def check(tx: Transaction) -> None:
        read_person(tx, visit.session.user_id, visit.session.key_id)

    def next_change() -> list[asyncio.Event]:
        changed = visit.state.history.changed
        if any(account.usage.minute for account in instruments.usages(visit)):
            asyncio.get_running_loop().call_later(_REFRESH_SECONDS, changed.set)
        return [changed]

    return await send_changes(visit, next_change, check)


def _row(request: AnsweredRequest, keys: Mapping[int, str]) -> Row:
    return Row(
        number=request.number,
        at=in_seconds(request.at),
        method=request.method,
        path=request.path,
        status=request.status,
        duration=shown_seconds(request.seconds),
        key="" if request.key_id is None else keys.get(request.key_id, f"key {request.key_id}"),
        has_fault=request.has_fault,
    )


def shown_seconds(seconds: float) -> str:
    """Return the duration of a request: ``0.8 ms``, ``35 ms``, ``2.51 s``."""
    if round(seconds, 4) < 0.01:
        return f"{seconds * 1000:.1f} ms"
    if round(seconds, 3) < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.2f} s"


def _choice(text: str, choices: Sequence[str]) -> str:
    return text if text in choices else ""


def _url(filters: Mapping[str, str], **more: int) -> str:
    chosen = {name: value for name, value in {**filters, **more}.items() if value}
    return f"{CONSOLE_PATH}/requests?{urlencode(chosen)}" if chosen else f"{CONSOLE_PATH}/requests"
