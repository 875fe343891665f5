"""A server between the client and another one that writes down what passes."""

import json
from types import TracebackType
from typing import NamedTuple, Self

from aiohttp import ClientResponse, ClientSession, web
from yarl import URL

from neonctl_async.transport.protocol import Json


class Exchange(NamedTuple):
    """A request as it came over the wire, what there is to say against it, and its answer."""

    method: str
    path: str
    query: list[tuple[str, str]]
    body: Json
    violations: list[str]
    status: int
    answer: Json

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Witness:
    """Passes requests on to a server, with ``prefer`` as the header that asks for an answer."""

    def __init__(self, server: str, prefer: str = "") -> None:
        self.seen: list[Exchange] = []
        self._server = server
        self._prefer = prefer

    async def __aenter__(self) -> Self:
        self._http = ClientSession(max_field_size=1 << 20)
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._pass_on)
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

    async def _pass_on(self, request: web.Request) -> web.Response:
        body = await request.read()
        status, answer, violations = await self._ask(request, body)
        self.seen.append(
            Exchange(
                method=request.method,
                path=request.rel_url.raw_path,
                query=list(request.query.items()),
                body=json.loads(body) if body else None,
                violations=violations,
                status=status,
                answer=json.loads(answer) if answer else None,
            )
        )
        return web.Response(status=status, body=answer, content_type="application/json")

    async def _ask(self, request: web.Request, body: bytes) -> tuple[int, bytes, list[str]]:
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
        ) as answer:
            return answer.status, await answer.read(), await _violations(answer)


async def _violations(answer: ClientResponse) -> list[str]:
    """What is wrong with the request; that a documented answer does not fit is another matter."""
    if answer.status < 400:
        return []
    found = json.loads(answer.headers.get("sl-violations", "[]"))
    told = [f"{'.'.join(one['location'])}: {one['message']}" for one in found]
    return told or [f"{answer.status} {await answer.text()}"]
