"""An API whose computes are behind a server on a real socket."""

from collections.abc import Mapping
from typing import Any

from tests.connections.postgres_server import PostgresServer
from tests.models import records
from tests.support.fake_neon import FakeNeon
from tests.support.records import JsonObject, operation_json
from tests.support.server import Received, Respond, http_response

PROXY = "127.0.0.1"
"""The host of all computes of a local control plane with real databases."""


class Api(FakeNeon):
    """An API with operations and stored responses.

    ``responses`` are the responses by method and path.
    """

    def __init__(self, *, port: int, host: str = PROXY) -> None:
        super().__init__()
        self.postgres_port = port
        self.host = host
        self.responses: dict[str, Respond] = {}
        self.fault = self.stored_response

    def endpoint(self, id: str = "ep-1", **more: Any) -> JsonObject:
        return {**records.ENDPOINT, "id": id, "host": self.host, "current_state": "active", **more}

    def uri(self, endpoint_id: str = "ep-1") -> str:
        query = f"options=endpoint%3D{endpoint_id}&sslmode=disable"
        return f"postgresql://ada:npg_secret@{PROXY}:{self.postgres_port}/shop?{query}"

    def created(self, *endpoint_ids: str) -> JsonObject:
        """Return the response to the creation of a branch."""
        parameters = {"database": "shop", "role": "ada", "host": PROXY, "password": "npg_secret"}
        return {
            "branch": records.BRANCH,
            "endpoints": [self.endpoint(id) for id in endpoint_ids],
            "operations": [self.operation(endpoint_ids[0])],
            "connection_uris": [
                {
                    "connection_uri": self.uri(endpoint_ids[0]),
                    "connection_parameters": parameters,
                }
            ],
        }

    def operation(self, endpoint_id: str | None, action: str = "apply_config") -> JsonObject:
        """Start an operation that takes one second, and return its first record."""
        id = f"{action}-{endpoint_id}"
        fields: dict[str, Any] = {"endpoint_id": endpoint_id, "action": action}
        self.start(id, ends=1.0, project_id="p-1", **fields)
        return operation_json(id, "running", project_id="p-1", at=-1, **fields)

    def respond_to(self, line: str, content: Mapping[str, object], status: int = 200) -> None:
        self.responses[line] = http_response(status, content)

    @property
    def lines(self) -> list[str]:
        """The requests, without the polls of operations."""
        lines = [f"{one.method} {one.path.removeprefix('/api/v2')}" for one in self.received]
        return [line for line in lines if "/operations" not in line]

    def stored_response(self, request: Received) -> Respond | None:
        return self.responses.get(f"{request.method} {request.path.removeprefix('/api/v2')}")


def options_of(server: PostgresServer) -> list[str]:
    """Return the options with which clients have selected a compute, sorted."""
    return sorted(startup.get("options", "") for startup in server.startups)


def serve_role(api: Api, *operations: JsonObject) -> None:
    """Respond to the creation of a role with ``operations``."""
    response = {"role": records.ROLE, "operations": operations}
    api.respond_to("POST /projects/p-1/branches/br-1/roles", response)
    database = {**records.DATABASE, "name": "shop", "owner_name": "ada"}
    api.respond_to("GET /projects/p-1/branches/br-1/databases", {"databases": [database]})
    api.respond_to("GET /projects/p-1/connection_uri", {"uri": api.uri()})
