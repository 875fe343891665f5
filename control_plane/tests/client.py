"""An HTTP client for the tests, independent of the package's own client."""

import io
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

import aiohttp
from yarl import URL

from neonctl_local import LocalControlPlane, Tenant
from neonctl_local.server.tenants.state import TenantState


class Reply:
    """A response with its complete body."""

    def __init__(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.status = status
        self.headers = headers
        self.content = content

    # Any: each test knows the shape of the body.
    @property
    def json(self) -> Any:
        """The decoded JSON body."""
        return json.loads(self.content)

    @property
    def message(self) -> str:
        """The message of an error body. Also checks the fields of the body."""
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

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
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
        """Send a request and read the response. An empty ``key`` sends no key."""
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

    # Any: the keyword arguments of send.
    async def expect_error(
        self, status: int, words: str, method: str, path: str, body: object = None, **options: Any
    ) -> None:
        """Send a request, and check the status and some words of its error message."""
        reply = await self.send(method, path, body, **options)
        assert (reply.status, words in reply.message) == (status, True), reply.message

    async def get(self, path: str, *, key: str | None = None) -> Any:  # Any: as Reply.json
        """Return the body of a successful GET."""
        return await self.request("GET", path, key=key)

    # Any: as Reply.json.
    async def request(
        self, method: str, path: str, body: object = None, *, key: str | None = None
    ) -> Any:
        """Return the body of a successful request."""
        reply = await self.send(method, path, body, key=key)
        assert reply.status in {200, 201, 202}, reply.content
        return reply.json

    async def branch(self, project_id: str, *, compute: bool = False, **spec: object) -> Any:
        """Create a branch, with a read_write compute or without. Return the response."""
        body: dict[str, object] = {"branch": spec}
        if compute:
            body["endpoints"] = [{"type": "read_write"}]
        return await self.request("POST", f"/projects/{project_id}/branches", body)

    async def main_branch(self, project_id: str) -> Any:  # Any: as Reply.json
        """Return the first branch of a project."""
        (branch,) = (await self.get(f"/projects/{project_id}/branches?search=main"))["branches"]
        return branch

    async def branch_names(self, project_id: str, query: str = "") -> list[str]:
        page = await self.get(f"/projects/{project_id}/branches{query}")
        return [branch["name"] for branch in page["branches"]]

    async def project_names(self, query: str = "") -> list[str]:
        page = await self.get(f"/projects{query}")
        return [project["name"] for project in page["projects"]]

    async def add_database(self, branch_path: str, name: str) -> None:
        """Create a database of the first role of a branch."""
        body = {"database": {"name": name, "owner_name": "neondb_owner"}}
        await self.request("POST", f"{branch_path}/databases", body)

    async def operations(self, project_id: str) -> list[Any]:  # Any: as Reply.json
        """Return the newest 1000 operations of a project, oldest first."""
        page = await self.get(f"/projects/{project_id}/operations?limit=1000")
        return list(reversed(page["operations"]))

    async def actions(self, project_id: str) -> list[str]:
        """Return the actions of the newest operations of a project, oldest first."""
        return [operation["action"] for operation in await self.operations(project_id)]


class Client(Http):
    """Sends requests to a local control plane, with its first key by default."""

    def __init__(self, control_plane: LocalControlPlane, key: str | None = None) -> None:
        super().__init__(control_plane.base_url, control_plane.api_key if key is None else key)
        self.control_plane = control_plane

    @property
    def organization_path(self) -> str:
        """The path of the first organization."""
        return f"/organizations/{self.control_plane.org_id}"

    async def project(self, **spec: object) -> Any:  # Any: as Reply.json
        """Create a project, in the first organization by default. Return the response."""
        spec = {"org_id": self.control_plane.org_id} | spec
        return await self.request("POST", "/projects", {"project": spec})

    async def move_to_new_organization(self, project_id: str) -> str:
        """Transfer a project of the first organization to a new one. Return the id of that."""
        destination = await self.control_plane.create_organization("Other")
        body = {"destination_org_id": destination, "project_ids": [project_id]}
        await self.request("POST", f"{self.organization_path}/projects/transfer", body)
        return destination

    async def new_user_key(self, email: str) -> str:
        """Create a user. Return a personal key of the user."""
        user_id = await self.control_plane.create_user(email.partition("@")[0], email)
        return await self.control_plane.create_api_key("user key", user_id=user_id)


@asynccontextmanager
async def serve(key: str | None = None, **settings: Any) -> AsyncGenerator[Client]:
    """Run a local control plane with these settings, and open a client with its first key.

    No operation locks anything, unlike by default: most tests change a project again at once.
    """
    settings.setdefault("lock", "none")
    async with LocalControlPlane(**settings) as control_plane, Client(control_plane, key) as api:
        yield api


def branch_path_of(response: Any) -> str:
    """Return the path of the branch of a response."""
    branch = response["branch"]
    return f"/projects/{branch['project_id']}/branches/{branch['id']}"


def actions_of(response: Any) -> list[str]:
    """Return the actions of the operations of a response."""
    return [operation["action"] for operation in response["operations"]]


def state_of(tenant: Tenant) -> TenantState:
    """Return the state of a tenant, which the console reads."""
    return tenant._state  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - it has no public name
