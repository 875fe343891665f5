"""A proxy in front of the control plane that injects faults."""

import asyncio
import random
from collections.abc import Collection
from typing import Self

import aiohttp

from tests.support.server import MisbehavingServer, Received, Respond, http_response
from tools.campaign.faults import (
    ANY_REQUEST,
    LIMITED,
    LIMITING,
    POLLS,
    Exchange,
    Fault,
    PlaneResponse,
    is_poll,
    reset,
)
from tools.campaign.outcomes import FaultLog
from tools.campaign.records import RECORD_FAULTS, RecordFaults

KILLED = "the control plane is killed"
LOCKED = "423 that never ends"
PROXY_FAULTS = (*ANY_REQUEST, *POLLS, LOCKED, *RECORD_FAULTS)
"""All faults that a proxy can inject."""


class FaultProxy(MisbehavingServer):
    """Forwards requests to the control plane, and injects faults into a share of them.

    All kinds of faults are equally frequent. ``names`` are the faults to inject.
    """

    def __init__(
        self,
        upstream: str,
        chance: random.Random,
        share: float,
        log: FaultLog,
        names: Collection[str],
    ) -> None:
        super().__init__(self._response_to)
        self._upstream = upstream
        self._log = log
        self._chance = chance
        self._share = share
        self._names = names
        self._records = RecordFaults(chance, log, names)
        self._locked: set[bytes] = set()

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(auto_decompress=False)
        return await super().__aenter__()

    async def __aexit__(self, *exc_info: object) -> None:
        await self._http.close()
        await super().__aexit__(*exc_info)

    def _response_to(self, request: Received) -> Respond:
        fault = self._choose(request)

        async def respond(writer: asyncio.StreamWriter) -> None:
            try:
                exchange = Exchange(request, lambda: self._forward(request), self._chance)
                chosen = await fault(exchange)
            except aiohttp.ClientError:
                self._log.by_request[request.headers["x-request-id"]] = KILLED
                chosen = reset
            await chosen(writer)

        return respond

    def _choose(self, request: Received) -> Fault:
        """Return the fault for a request, or plain forwarding."""
        if request.body in self._locked:
            return self._lock
        if LIMITING.applies_to(request):
            self._count(request, LIMITED)
            return LIMITING
        faults = {**ANY_REQUEST, **POLLS} if is_poll(request) else ANY_REQUEST
        faults = {name: fault for name, fault in faults.items() if name in self._names}
        if request.body and LOCKED in self._names:
            faults[LOCKED] = self._lock
        if not faults or self._chance.random() >= self._share:
            self._log.unchanged.add(request.headers["x-request-id"])
            return _forward_unchanged
        name = self._chance.choice(list(faults))
        if name == LOCKED:
            self._locked.add(request.body)
        else:
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
            forwarded = PlaneResponse(response.status, await response.read())
        if response.status >= 400:
            self._log.rejected[request.headers["x-request-id"]] = response.status
        return self._records.rewrite(request, forwarded)


async def _forward_unchanged(exchange: Exchange) -> Respond:
    return (await exchange.forward()).complete()
