"""The parts of a request: parameters, and a body that must arrive within a deadline."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from neonctl_local import ids
from neonctl_local.errors import ApiError
from neonctl_local.server.connections import connection_of
from neonctl_local.server.http_errors import request_timeout

if TYPE_CHECKING:
    from multidict import MultiMapping

BODY_ERRORS: Final = (web.RequestPayloadError, HttpProcessingError)
"""The errors for a body with malformed chunks. The second comes from aiohttp's Python parser."""

_BODY: Final = web.RequestKey("body", bytearray)
_STEP: Final = 1 << 16
_DRAIN_SECONDS: Final = 1.0


def path_parameters(request: web.Request) -> dict[str, str]:
    """Return the decoded path parameters."""
    # The ids of operations, members and the like are UUIDs, which are equal in any case. Names of
    # roles and databases are not.
    return {
        name: ids.canonical(value) if name.endswith("_id") else value
        for name, value in request.match_info.items()
    }


def query_parameters(query: "MultiMapping[str]") -> dict[str, str]:
    """Return the query parameters."""
    # A list can be sent as repeated parameters, or as one parameter with commas.
    return {name: ",".join(query.getall(name)) for name in dict.fromkeys(query)}


async def read_json(request: web.Request) -> bytes:
    """Return the body. Raise 408 if it arrives too late, and 415 if it is not JSON."""
    content = bytes(await read_body(request))
    if content and request.content_type != "application/json":
        raise ApiError(415, f"the body is {request.content_type!r}: send 'application/json'")
    return content


async def read_early(request: web.Request) -> None:
    """Read the body and keep it for :func:`read_json`."""
    # So the request of a client that disconnects during the delay is not lost. A body that is too
    # large or too late is rejected later.
    with suppress(OSError, web.HTTPException, *BODY_ERRORS, ApiError):
        await read_body(request)


async def read_body(request: web.Request) -> bytearray:
    """Return the body. Raise the same errors as :func:`receive_body`."""
    if _BODY not in request:
        request[_BODY] = await receive_body(request, request.client_max_size, copies=2)
    return request[_BODY]


async def receive_body(request: web.Request, maximum: int, *, copies: int) -> bytearray:
    """Receive a body of up to ``maximum`` bytes, and reserve memory for ``copies`` copies of it.

    Raise 415 if it is compressed, 413 if it is too large, 408 if it arrives too late, and 503 if
    the memory is full.
    """
    _check_encoding(request)
    connection = connection_of(request)
    announced = request.content_length or 0
    if announced > maximum:
        raise web.HTTPRequestEntityTooLarge(maximum, announced)
    connection.reservation.add(copies * announced)
    body, reserved = bytearray(), announced
    try:
        async with asyncio.timeout_at(connection.body_deadline):
            while not request.content.at_eof():
                body += await request.content.readany()
                if len(body) > maximum:
                    raise web.HTTPRequestEntityTooLarge(maximum, len(body))
                # A body in chunks does not announce its length.
                if len(body) > reserved:
                    step = max(len(body) - reserved, _STEP)
                    connection.reservation.add(copies * step)
                    reserved += step
    except TimeoutError:
        raise request_timeout("body", connection.limits.body) from None
    return body


def _check_encoding(request: web.Request) -> None:
    encodings = ", ".join(request.headers.getall("Content-Encoding", ()))
    if request.body_exists and encodings.strip().lower() not in {"", "identity"}:
        raise ApiError(
            415,
            f"the Content-Encoding is {encodings[:100]!r}: send the body uncompressed",
            headers={"Accept-Encoding": "identity"},
        )


async def send_then_drain(request: web.Request, response: web.StreamResponse) -> None:
    """Send the response and read the rest of the body."""
    # Closing a connection with an unread body resets it, and the client loses the response.
    # aiohttp drains too, but in a task that outlives the connection and the server.
    with suppress(OSError, *BODY_ERRORS):
        await response.prepare(request)
        await response.write_eof()
        async with asyncio.timeout(_DRAIN_SECONDS):
            while not request.content.is_eof():
                await request.content.readany()
