"""A proxy between the client and a server, which records requests and responses."""

import base64
import json
from collections.abc import Iterator, Mapping
from email.parser import BytesParser
from email.policy import HTTP
from types import TracebackType
from typing import NamedTuple, Self

from aiohttp import ClientResponse, ClientSession, web
from yarl import URL

from neonctl_async.transport.encoding import Json


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
        status, content, content_type, violations = await self._forward(request, body)
        self.exchanges.append(
            Exchange(
                method=request.method,
                path=request.rel_url.raw_path,
                query=list(request.query.items()),
                body=_decoded(body, request.content_type, request.headers),
                violations=violations,
                status=status,
                response=_decoded(content, content_type),
            )
        )
        return web.Response(status=status, body=content, content_type="application/json")

    async def _forward(
        self, request: web.Request, body: bytes
    ) -> tuple[int, bytes, str, list[str]]:
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
            content = await response.read()
            return response.status, content, response.content_type, await _violations(response)


def _decoded(content: bytes, content_type: str, headers: Mapping[str, str] | None = None) -> Json:
    """Return a body as JSON: a form as an object of texts, and other bodies as Base64."""
    if not content:
        return None
    if content_type == "application/json":
        decoded: Json = json.loads(content)
        return decoded
    if content_type == "multipart/form-data" and headers is not None:
        return dict(_fields(content, headers["Content-Type"]))
    return base64.b64encode(content).decode()


def _fields(content: bytes, content_type: str) -> Iterator[tuple[str, str]]:
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    for part in BytesParser(policy=HTTP).parsebytes(head + content).iter_parts():
        name = str(part.get_param("name", header="Content-Disposition"))
        value = part.get_payload(decode=True)
        assert isinstance(value, bytes)
        is_file = part.get_filename() is not None
        yield name, base64.b64encode(value).decode() if is_file else value.decode()


async def _violations(response: ClientResponse) -> list[str]:
    """Return the violations that Prism reports for the request of an error response."""
    if response.status < 400:
        return []
    reported = json.loads(response.headers.get("sl-violations", "[]"))
    violations = [
        f"{'.'.join(violation['location'])}: {violation['message']}" for violation in reported
    ]
    return violations or [f"{response.status} {await response.text()}"]
