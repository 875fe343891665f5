"""One answer for every request, and what was asked."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from neonctl_async import NeonClient
from tests.support.records import client_of
from tests.support.server import MisbehavingServer, answer


class Asked(NamedTuple):
    """A request, taken apart."""

    method: str
    path: str
    query: dict[str, str]
    body: object


class Exchange(NamedTuple):
    """A client whose every request gets the same answer."""

    neon: NeonClient
    server: MisbehavingServer

    @property
    def asked(self) -> Asked:
        """The one request that was sent."""
        [request] = self.server.received
        target = urlsplit(request.target)
        return Asked(
            request.method,
            target.path.removeprefix("/api/v2"),
            dict(parse_qsl(target.query, keep_blank_values=True)),
            request.json() if request.body else None,
        )


@asynccontextmanager
async def answering(
    content: object = None, status: int = 200, *, body: bytes | None = None
) -> AsyncGenerator[Exchange, None]:
    """A client that is always answered with ``content``, or with ``body`` as it is."""
    async with (
        MisbehavingServer(lambda _request: answer(status, content, body=body)) as server,
        client_of(server) as neon,
    ):
        yield Exchange(neon, server)
