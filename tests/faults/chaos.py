"""A proxy in front of the control plane that strikes requests with faults."""

import asyncio
import random
from collections import Counter
from typing import Self

import aiohttp

from tests.faults.kinds import (
    ANYWHERE,
    OF_POLLS,
    Answered,
    Exchange,
    Fault,
    is_poll,
    reset,
)
from tests.support.server import MisbehavingServer, Received, Respond, http_response

NO_SERVER = "the control plane is killed"
LOCKED = "423 that never ends"


class Strikes:
    """Which faults there were, and which requests met them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.of_request: dict[str, str] = {}
        """The fault, by the ``X-Request-ID``."""

    def note(self, request_id: str, fault: str) -> None:
        """A request has met a fault."""
        self.counts[fault] += 1
        self.of_request[request_id] = fault


class Chaos:
    """Passes on what it is sent to the control plane, and strikes a share of it.

    Every kind of fault comes about as often as any other.
    """

    def __init__(
        self, upstream: str, chance: random.Random, share: float, strikes: Strikes
    ) -> None:
        self._upstream = upstream
        self._strikes = strikes
        self._chance = chance
        self._share = share
        self._locked: set[bytes] = set()
        self._server = MisbehavingServer(self._respond)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        self._http = aiohttp.ClientSession(auto_decompress=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()
        await self._server.__aexit__(None, None, None)

    @property
    def base_url(self) -> str:
        """Where the clients of the campaign send their requests."""
        return self._server.base_url

    def _respond(self, request: Received) -> Respond:
        fault = self._draw(request)

        async def respond(writer: asyncio.StreamWriter) -> None:
            try:
                chosen = await fault(Exchange(request, lambda: self._work(request), self._chance))
            except aiohttp.ClientError:
                self._count(request, NO_SERVER)
                chosen = reset
            await chosen(writer)

        return respond

    def _draw(self, request: Received) -> Fault:
        """What happens to a request; nothing but the work, most of the time."""
        kinds = ANYWHERE | OF_POLLS if is_poll(request) else ANYWHERE
        if request.body in self._locked:
            return self._lock
        if self._chance.random() >= self._share:
            return _pass_on
        drawn = self._chance.randrange(len(kinds) + 1)
        if drawn == len(kinds):
            if request.body:
                self._locked.add(request.body)
                return self._lock
            return _pass_on
        name = list(kinds)[drawn]
        self._count(request, name)
        return kinds[name]

    async def _lock(self, exchange: Exchange) -> Respond:
        self._count(exchange.request, LOCKED)
        return http_response(423, {"message": "conflicting operations"})

    def _count(self, request: Received, fault: str) -> None:
        self._strikes.note(request.headers["x-request-id"], fault)

    async def _work(self, request: Received) -> Answered:
        headers = {
            name: value
            for name, value in request.headers.items()
            if name in ("authorization", "content-type", "x-request-id")
        }
        url = self._upstream + request.target.removeprefix("/api/v2")
        async with self._http.request(
            request.method, url, headers=headers, data=request.body or None
        ) as response:
            return Answered(response.status, await response.read())


async def _pass_on(exchange: Exchange) -> Respond:
    return (await exchange.work()).whole()
