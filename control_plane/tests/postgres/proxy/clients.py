"""A minimal client of the Postgres protocol, which sends any bytes."""

import asyncio
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from neonctl_local.postgres.proxy.connector import Login, Route
from neonctl_local.postgres.proxy.startup import StartupMessage

SSL_REQUEST = b"\0\0\0\x08\x04\xd2\x16\x2f"


class Refusal(NamedTuple):
    """An ErrorResponse."""

    severity: str
    code: str
    message: str


def route_to(path: Path) -> Route:
    """Return the route to a server without roles."""
    return Route(path, read_only=False, find_login=_no_login)


async def _no_login(_role: str, _database: str) -> Login:
    return Login(None)


async def never_stopped(*_names: str) -> Login | None:
    """Say that a compute runs."""
    return None


def startup(**parameters: str) -> bytes:
    """Return a startup packet."""
    pairs = {name.encode(): value.encode() for name, value in parameters.items()}
    return StartupMessage(3 << 16, pairs).encode()


def parse_refusal(response: bytes) -> Refusal:
    """Return the ErrorResponse that is the whole response of a server."""
    match = re.fullmatch(
        rb"E(?s:....)S(\w+)\0V\w+\0C(\w+)\0M([^\0]+)\0(?:[A-Z][^\0]*\0)*\0", response
    )
    assert match, response
    assert int.from_bytes(response[1:5]) == len(response) - 1
    severity, code, message = (field.decode() for field in match.groups())
    return Refusal(severity, code, message)


async def exchange(port: int, *data: bytes) -> bytes:
    """Send bytes, and return everything that the server sends until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"".join(data))
        received = b""
        with suppress(ConnectionError):
            while part := await reader.read(65536):
                received += part
        return received
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
