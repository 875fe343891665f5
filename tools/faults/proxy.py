"""A proxy in front of the control plane that injects faults."""

import asyncio
import random
from collections import Counter
from typing import Self

import aiohttp

from tests.support.server import MisbehavingServer, Received, Respond, http_response
from tools.faults.faults import (
    ANY_REQUEST,
    POLLS,
    Exchange,
    Fault,
    PlaneResponse,
    is_poll,
    reset,
)

NO_SERVER = "the control plane is killed"
LOCKED = "423 that never ends"


class FaultLog:
    """The injected faults, and the requests that met them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.by_request: dict[str, str] = {}
        """The fault by ``X-Request-ID``."""

    def add(self, request_id: str, fault: str) -> None:
        """Record that a request met a fault."""
        self.counts[fault] += 1
        self.by_request[request_id] = fault


class FaultProxy:
    """Forwards requests to the control plane, and injects faults into a share of them.

    All kinds of faults are equally frequent.
    """

    def __init__(self, upstream: str, chance: random.Random, share: float, log: FaultLog) -> None:
        self._upstream = upstream
        self._log = log
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
        """The base URL for the clients of the campaign."""
        return self._server.base_url

    def _respond(self, request: Received) -> Respond:
        fault = self._choose(request)

        async def respond(writer: asyncio.StreamWriter) -> None:
            try:
                exchange = Exchange(request, lambda: self._forward(request), self._chance)
                chosen = await fault(exchange)
            except aiohttp.ClientError:
                self._count(request, NO_SERVER)
                chosen = reset
            await chosen(writer)

        return respond

    def _choose(self, request: Received) -> Fault:
        """Return the fault for a request, or plain forwarding."""
        faults = ANY_REQUEST | POLLS if is_poll(request) else ANY_REQUEST
        if request.body in self._locked:
            return self._lock
        if self._chance.random() >= self._share:
            return _forward_unchanged
        drawn = self._chance.randrange(len(faults) + 1)
        if drawn == len(faults):
            if request.body:
                self._locked.add(request.body)
                return self._lock
            return _forward_unchanged
        name = list(faults)[drawn]
        self._count(request, name)
        return faults[name]

    async def _lock(self, exchange: Exchange) -> Respond:
        self._count(exchange.request, LOCKED)
        return http_response(423, {"message": "conflicting operations"})

    def _count(self, request: Received, fault: str) -> None:
        self._log.add(request.headers["x-request-id"], fault)

    async def _forward(self, request: Received) -> PlaneResponse:
        headers = {
            name: value
            for name, value in request.headers.items()
            if name in ("authorization", "content-type", "x-request-id")
        }
        url = self._upstream + request.target.removeprefix("/api/v2")
        async with self._http.request(
            request.method, url, headers=headers, data=request.body or None
        ) as response:
            return PlaneResponse(response.status, await response.read())


async def _forward_unchanged(exchange: Exchange) -> Respond:
    return (await exchange.forward()).complete()
