"""A proxy between the client and a server, which records requests and responses."""

import json
from types import TracebackType
from typing import NamedTuple, Self

from aiohttp import ClientResponse, ClientSession, web
from yarl import URL

from neonctl_async.transport.decoding import Json


class Exchange(NamedTuple):
    """A request as it was sent, its violations of the description, and its response."""

    method: str
    path: str
    query: list[tuple[str, str]]
    body: Json
    violations: list[str]
    status: int
    response: Json

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Recorder:
    """Forwards requests to a server. ``prefer`` is the value of their ``Prefer`` header."""

    def __init__(self, server: str, prefer: str = "") -> None:
        self.exchanges: list[Exchange] = []
        self._server = server
        self._prefer = prefer

    async def __aenter__(self) -> Self:
        self._http = ClientSession(max_field_size=1 << 20)
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()
        await self._http.close()

    async def _handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        status, content, violations = await self._forward(request, body)
        self.exchanges.append(
            Exchange(
                method=request.method,
                path=request.rel_url.raw_path,
                query=list(request.query.items()),
                body=json.loads(body) if body else None,
                violations=violations,
                status=status,
                response=json.loads(content) if content else None,
            )
        )
        return web.Response(status=status, body=content, content_type="application/json")

    async def _forward(self, request: web.Request, body: bytes) -> tuple[int, bytes, list[str]]:
        headers = {
            name: value
            for name in ("Authorization", "Content-Type")
            if (value := request.headers.get(name)) is not None
        }
        if self._prefer:
            headers["Prefer"] = self._prefer
        url = URL(self._server + request.raw_path, encoded=True)
        async with self._http.request(
            request.method, url, data=body or None, headers=headers
        ) as response:
            return response.status, await response.read(), await _violations(response)


async def _violations(response: ClientResponse) -> list[str]:
    """Return the violations that Prism reports for the request of an error response."""
    if response.status < 400:
        return []
    reported = json.loads(response.headers.get("sl-violations", "[]"))
    violations = [
        f"{'.'.join(violation['location'])}: {violation['message']}" for violation in reported
    ]
    return violations or [f"{response.status} {await response.text()}"]
