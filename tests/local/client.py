"""A plain HTTP client for the tests: nothing of the package's own client is in it."""

import io
import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

from neonctl_async.local import LocalControlPlane


class Reply:
    """An answer, read to its end."""

    def __init__(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.status = status
        self.headers = headers
        self.content = content

    # Any: what a JSON body holds is for each test to say.
    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.content)

    @property
    def message(self) -> str:
        """The message of an error body, whose shape is checked on the way."""
        body = self.json
        assert set(body) == {"code", "message", "request_id"}
        assert body["request_id"] == self.headers["x-neon-ret-request-id"]
        return str(body["message"])


class Http:
    """Sends requests to a base address with a key."""

    def __init__(self, base_url: str, key: str) -> None:
        self.base_url = base_url
        self.key = key
        self._session = aiohttp.ClientSession()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request and read its answer. An empty ``key`` sends none."""
        key = self.key if key is None else key
        sent = {"Accept": "application/json"}
        if key:
            sent["Authorization"] = f"Bearer {key}"
        if body is not None:
            content = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        url = URL(self.base_url + path, encoded=True)
        data = None if content is None else io.BytesIO(content)
        async with self._session.request(
            method, url, data=data, headers=sent | dict(headers or {})
        ) as response:
            return Reply(response.status, response.headers, await response.read())

    async def get(self, path: str, *, key: str | None = None) -> Any:  # Any: as Reply.json
        """The body of a successful GET."""
        return await self.done("GET", path, key=key)

    # Any: as Reply.json.
    async def done(
        self, method: str, path: str, body: object = None, *, key: str | None = None
    ) -> Any:
        """The body of a successful request."""
        reply = await self.send(method, path, body, key=key)
        assert reply.status in {200, 201, 202}, reply.content
        return reply.json

    async def branch(self, project_id: str, *, compute: bool = False, **spec: object) -> Any:
        """The answer to a new branch, with a read_write compute or with none."""
        body: dict[str, object] = {"branch": spec}
        if compute:
            body["endpoints"] = [{"type": "read_write"}]
        return await self.done("POST", f"/projects/{project_id}/branches", body)

    async def operations(self, project_id: str) -> list[Any]:  # Any: as Reply.json
        """The newest operations of a project, oldest first."""
        listed = await self.get(f"/projects/{project_id}/operations?limit=1000")
        return list(reversed(listed["operations"]))

    async def actions(self, project_id: str) -> list[str]:
        """Their actions."""
        return [operation["action"] for operation in await self.operations(project_id)]


class Client(Http):
    """Sends requests to a plane with a key, its first one unless another is given."""

    def __init__(self, control_plane: LocalControlPlane, key: str | None = None) -> None:
        super().__init__(control_plane.base_url, control_plane.api_key if key is None else key)
        self.control_plane = control_plane

    async def project(self, **spec: object) -> Any:  # Any: as Reply.json
        """The answer to a new project of the first organization, unless told otherwise."""
        spec = {"org_id": self.control_plane.org_id} | spec
        return await self.done("POST", "/projects", {"project": spec})

    async def newcomer(self, email: str) -> str:
        """The personal key of a user who has just signed up."""
        user_id = await self.control_plane.create_user(email.partition("@")[0], email)
        return await self.control_plane.create_api_key("theirs", user_id=user_id)
