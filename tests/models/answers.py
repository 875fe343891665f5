"""The least that each record of an answer holds, and how answers are decoded."""

from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from neonctl_async.models import (
    api_keys,
    branches,
    connections,
    databases,
    endpoints,
    operations,
    pagination,
    projects,
    roles,
)
from neonctl_async.models.base import Model
from neonctl_async.models.secret import Secret
from neonctl_async.transport.protocol import Answer, Wire, request

T = TypeVar("T")
WIRE = Wire("https://h.example.com/api/v2", Secret("napi_of_nobody"), max_response_bytes=1 << 20)
JsonObject = dict[str, object]

NOON = "2026-01-01T12:00:00Z"
AT_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_TIMES: JsonObject = {"created_at": NOON, "updated_at": NOON}

BRANCH: JsonObject = {
    "id": "br-1",
    "project_id": "p-1",
    "name": "main",
    "current_state": "ready",
    **_TIMES,
}
CONNECTION_PARAMETERS: JsonObject = {
    "database": "neondb",
    "role": "owner",
    "host": "ep-1.example.com",
    "password": "hunter2",
}
CONNECTION: JsonObject = {
    "connection_uri": "postgresql://owner:hunter2@ep-1.example.com/neondb",
    "connection_parameters": CONNECTION_PARAMETERS,
}
DATABASE: JsonObject = {
    "id": 1,
    "branch_id": "br-1",
    "name": "neondb",
    "owner_name": "owner",
    **_TIMES,
}
ENDPOINT: JsonObject = {
    "id": "ep-1",
    "project_id": "p-1",
    "branch_id": "br-1",
    "host": "ep-1.example.com",
    "type": "read_write",
    "current_state": "init",
    **_TIMES,
}
OPERATION: JsonObject = {
    "id": "op-1",
    "project_id": "p-1",
    "action": "create_branch",
    "status": "running",
    **_TIMES,
}
PROJECT: JsonObject = {
    "id": "p-1",
    "name": "shop",
    "platform_id": "aws",
    "region_id": "aws-us-east-2",
    "provisioner": "k8s-pod",
    "pg_version": 17,
    "proxy_host": "us-east-2.aws.neon.tech",
    "cpu_used_sec": 0,
    "branch_logical_size_limit": 3072,
    **_TIMES,
}
ROLE: JsonObject = {"branch_id": "br-1", "name": "owner", **_TIMES}

LEAST: dict[type[Model], JsonObject] = {
    api_keys.ApiKeyCreated: {"id": 1, "key": "napi_1"},
    api_keys.ApiKeyCreator: {"id": "user-1"},
    api_keys.ApiKey: {"id": 1, "name": "ci"},
    api_keys.ApiKeyRevoked: {"id": 1, "name": "ci", "revoked": True},
    branches.Annotation: {"object": {"type": "branch", "id": "br-1"}, "value": {"a": "b"}},
    branches.Branch: BRANCH,
    branches.BranchCreated: {"branch": BRANCH, "operations": [OPERATION]},
    branches.BranchCreator: {},
    branches.BranchDeleted: {},
    branches.BranchesPage: {"branches": [BRANCH]},
    branches.BranchRecovery: {"deleted_at": NOON, "recoverable_until": NOON},
    branches.BranchResponse: {"branch": BRANCH},
    branches.BranchRestrictedAction: {"name": "delete", "reason": "it is the default branch"},
    connections.ConnectionDetails: CONNECTION,
    connections.ConnectionParameters: CONNECTION_PARAMETERS,
    databases.Database: DATABASE,
    endpoints.Endpoint: ENDPOINT,
    endpoints.EndpointSettings: {},
    endpoints.PreloadLibraries: {},
    operations.Operation: OPERATION,
    operations.OperationRef: {"project_id": "p-1", "id": "op-1"},
    operations.OperationResponse: {"operation": OPERATION},
    operations.OperationsPage: {"operations": [OPERATION]},
    operations.Started: {"operations": [OPERATION]},
    pagination.Pagination: {},
    projects.AllowedIps: {},
    projects.DefaultEndpointSettings: {},
    projects.MaintenanceWindow: {"weekdays": [1, 7], "start_time": "01:00", "end_time": "02:00"},
    projects.Project: PROJECT,
    projects.ProjectCreated: {"project": PROJECT, "branch": BRANCH, "operations": [OPERATION]},
    projects.ProjectOwner: {},
    projects.ProjectQuota: {},
    projects.ProjectResponse: {"project": PROJECT},
    projects.ProjectSettings: {},
    projects.ProjectsPage: {"projects": [PROJECT]},
    roles.Role: ROLE,
}
"""Each record that answers hold, with its required fields alone."""

SENT: list[type[Model]] = [
    api_keys.ApiKeyCreateRequest,
    branches.BranchCreateRequest,
    branches.BranchSpec,
    endpoints.EndpointSpec,
    projects.ProjectBranchSpec,
    projects.ProjectCreateRequest,
    projects.ProjectSpec,
]
"""Records that are only ever sent."""


def decode(kind: type[T], shown: object) -> T:
    """What an answer that shows ``shown`` decodes into."""
    call = request("GET", "/records", kind)
    return WIRE.read(call, "req-1", Answer(200, {}, msgspec.json.encode(shown)))
