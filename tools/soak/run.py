"""The state that the writers of a campaign share: the server, the requests and the findings."""

import asyncio
from collections import Counter
from collections.abc import Collection

import aiohttp

from control_plane.tests.client import Http, Reply

SUCCESSFUL = frozenset({200, 201})


class LostResponseError(Exception):
    """A request got no response, or an unexpected one. Its effect is unknown."""


class Run:
    """The state of a campaign. ``up`` is set while a server runs."""

    http: Http

    def __init__(self) -> None:
        self.up = asyncio.Event()
        self.over = False
        self.violations: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.lost_responses = 0

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        expected: Collection[int] = SUCCESSFUL,
    ) -> Reply:
        """Send a request while a server runs. A status that is not expected is a violation."""
        await self.up.wait()
        try:
            reply = await self.http.send(method, path, body, key=key)
        except (aiohttp.ClientError, OSError):
            self.lost_responses += 1
            raise LostResponseError from None
        self.statuses[reply.status] += 1
        if reply.status not in expected:
            self.violations.append(f"{method} {path}: {reply.status} {reply.content!r}")
            raise LostResponseError
        return reply
