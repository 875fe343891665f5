"""The smallest valid JSON of each record, and a function that decodes a response."""

from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from neonctl_async.models import (
    api_keys,
    base,
    branches,
    consumption,
    databases,
    endpoints,
    operations,
    organizations,
    projects,
    regions,
    roles,
    snapshots,
    users,
)
from neonctl_async.models.base import Empty, Model
from neonctl_async.models.secret import Secret
from neonctl_async.transport.protocol import Response, Wire, request

T = TypeVar("T")
WIRE = Wire("https://h.example.com/api/v2", [Secret("napi_test")], max_response_bytes=1 << 20)
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

ADVISOR_ISSUE: JsonObject = {"name": "n", "title": "t", "level": "WARN", "cache_key": "k"}
BRANCH_METRICS: JsonObject = {"project_id": "p-1", "branch_id": "br-1", "periods": []}
COLUMN: JsonObject = {"name": "id", "type": "bigint"}
INVITATION: JsonObject = {"id": "i-1", "email": "a@b.c", "org_id": "org-1", "role": "member"}
JWKS: JsonObject = {
    "id": "jwks-1",
    "project_id": "p-1",
    "jwks_url": "https://id.example.com/keys",
    "provider_name": "Example",
}
LIBRARY: JsonObject = {"library_name": "timescaledb"}
MASKING_RULE: JsonObject = {
    "database_name": "neondb",
    "schema_name": "public",
    "table_name": "users",
    "column_name": "email",
}
MEMBER: JsonObject = {"id": "m-1", "user_id": "user-1", "org_id": "org-1", "role": "admin"}
MEMBER_WITH_USER: JsonObject = {"member": MEMBER, "user": {"email": "a@b.c"}}
METRIC: JsonObject = {"metric_name": "compute_unit_seconds", "value": 3600}
ORGANIZATION: JsonObject = {"id": "org-1", "name": "Shop"}
PERIOD: JsonObject = {"period_id": "period-1", "period_start": NOON, "consumption": []}
PERMISSION: JsonObject = {"id": "permission-1", "granted_to_email": "a@b.c"}
PROJECT_MEMBER: JsonObject = {"member_id": "m-1", "user_id": "user-1", "org_role": "editor"}
PROJECT_CONSUMPTION: JsonObject = {"project_id": "p-1", "periods": []}
REFERENCED_TABLE: JsonObject = {"schema": "public", "table": "users", "columns": ["id"]}
REGION: JsonObject = {"region_id": "aws-us-east-2", "name": "AWS US East 2 (Ohio)"}
SNAPSHOT: JsonObject = {"id": "snap-1", "name": "nightly"}
ANONYMIZATION_STATUS: JsonObject = {"project_id": "p-1", "branch_id": "br-1", "state": "anonymized"}
TABLE: JsonObject = {"schema": "public", "name": "users", "columns": [COLUMN]}
VPC_ENDPOINT: JsonObject = {"vpc_endpoint_id": "vpce-1"}

MINIMAL: dict[type[Model], JsonObject] = {
    Empty: {},
    projects.AdvisorIssue: ADVISOR_ISSUE,
    projects.AdvisorIssuesResponse: {"issues": [ADVISOR_ISSUE]},
    branches.AnonymizationRun: {},
    branches.AnonymizedBranchStatus: ANONYMIZATION_STATUS,
    branches.MaskingRule: MASKING_RULE,
    branches.MaskingRulesResponse: {"masking_rules": [MASKING_RULE]},
    api_keys.ApiKeyCreated: {"id": 1, "key": "napi_1"},
    api_keys.ApiKeyCreator: {"id": "user-1"},
    api_keys.ApiKey: {"id": 1, "name": "ci"},
    api_keys.ApiKeyRevoked: {"id": 1, "name": "ci", "revoked": True},
    users.BankCard: {"last4": "4242"},
    users.BillingAccount: {},
    users.PaymentSource: {"type": "card"},
    users.PlanDetails: {"name": "launch"},
    users.PlanVersion: {"major": 3, "minor": 1},
    branches.AnnotationObject: {"type": "branch", "id": "br-1"},
    branches.Annotation: {"object": {"type": "branch", "id": "br-1"}, "value": {"a": "b"}},
    branches.Branch: BRANCH,
    branches.BranchCreated: {"branch": BRANCH, "operations": [OPERATION]},
    branches.BranchCreator: {},
    branches.BranchDeleted: {},
    branches.BranchUpdated: {"branch": BRANCH, "operations": [OPERATION]},
    branches.BranchRecovered: {"branch": BRANCH},
    branches.BranchesCount: {"count": 2},
    branches.BranchesPage: {"branches": [BRANCH]},
    branches.BranchRecovery: {"deleted_at": NOON, "recoverable_until": NOON},
    branches.BranchResponse: {"branch": BRANCH},
    branches.BranchRestrictedAction: {"name": "delete", "reason": "it is the default branch"},
    databases.ConnectionDetails: CONNECTION,
    databases.ConnectionParameters: CONNECTION_PARAMETERS,
    databases.ConnectionURIResponse: {"uri": "postgresql://owner:hunter2@ep-1.example.com/neondb"},
    consumption.BranchMetrics: BRANCH_METRICS,
    consumption.BranchMetricsPage: {"branches": [BRANCH_METRICS]},
    consumption.ConsumptionMetric: METRIC,
    consumption.ConsumptionPeriod: PERIOD,
    consumption.ConsumptionTimeframe: {},
    consumption.ProjectConsumption: PROJECT_CONSUMPTION,
    consumption.ProjectConsumptionPage: {"projects": [PROJECT_CONSUMPTION]},
    consumption.ProjectConsumptionPeriod: PERIOD,
    consumption.ProjectConsumptionTimeframe: {"timeframe_start": NOON, "timeframe_end": NOON},
    consumption.ProjectMetrics: PROJECT_CONSUMPTION,
    consumption.ProjectMetricsPage: {"projects": [PROJECT_CONSUMPTION]},
    databases.Database: DATABASE,
    databases.DatabaseDeleted: {},
    databases.DatabaseUpdated: {"database": DATABASE, "operations": [OPERATION]},
    databases.DatabaseResponse: {"database": DATABASE},
    databases.DatabasesResponse: {"databases": [DATABASE]},
    endpoints.Endpoint: ENDPOINT,
    endpoints.EndpointDeleted: {},
    endpoints.EndpointUpdated: {"endpoint": ENDPOINT, "operations": [OPERATION]},
    endpoints.EndpointResponse: {"endpoint": ENDPOINT},
    endpoints.EndpointSettings: {},
    endpoints.EndpointsResponse: {"endpoints": [ENDPOINT]},
    endpoints.PreloadLibraries: {},
    operations.Operation: OPERATION,
    operations.OperationRef: {"project_id": "p-1", "id": "op-1"},
    operations.OperationResponse: {"operation": OPERATION},
    operations.OperationsPage: {"operations": [OPERATION]},
    operations.OperationsResponse: {"operations": [OPERATION]},
    organizations.Invitation: INVITATION,
    organizations.InvitationsResponse: {"invitations": [INVITATION]},
    organizations.Member: MEMBER,
    organizations.MembersPage: {"members": [MEMBER_WITH_USER]},
    organizations.MemberUser: {"email": "a@b.c"},
    organizations.MemberWithUser: MEMBER_WITH_USER,
    organizations.Organization: ORGANIZATION,
    organizations.OrganizationsResponse: {"organizations": [ORGANIZATION]},
    organizations.SpendingLimit: {},
    base.Pagination: {},
    projects.JWKS: JWKS,
    projects.JWKSCreated: {"jwks": JWKS, "operations": [OPERATION]},
    projects.JWKSResponse: {"jwks": [JWKS]},
    projects.ProjectMember: PROJECT_MEMBER,
    projects.ProjectMemberPermissions: PROJECT_MEMBER,
    projects.ProjectMembersPage: {"project_members": [PROJECT_MEMBER]},
    projects.ProjectMemberUpdated: {**PROJECT_MEMBER, "project_id": "p-1"},
    projects.ProjectPermission: PERMISSION,
    projects.ProjectPermissionsResponse: {"project_permissions": [PERMISSION]},
    projects.TransferRequest: {"id": "transfer-1", "project_id": "p-1"},
    projects.AllowedIps: {},
    projects.AvailablePreloadLibrary: LIBRARY,
    projects.AvailablePreloadLibrariesResponse: {},
    projects.DefaultEndpointSettings: {},
    projects.MaintenanceWindow: {"weekdays": [1, 7], "start_time": "01:00", "end_time": "02:00"},
    projects.Project: PROJECT,
    projects.ProjectCreated: {"project": PROJECT, "branch": BRANCH, "operations": [OPERATION]},
    projects.ProjectDeleted: {"project": PROJECT},
    projects.ProjectUpdated: {"project": PROJECT, "operations": [OPERATION]},
    projects.ProjectOwner: {},
    projects.ProjectQuota: {},
    projects.ProjectRecovered: {"project": PROJECT},
    projects.ProjectResponse: {"project": PROJECT},
    projects.ProjectSettings: {},
    projects.ProjectsPage: {"projects": [PROJECT]},
    regions.Region: REGION,
    regions.RegionsResponse: {"regions": [REGION]},
    roles.Role: ROLE,
    roles.RoleDeleted: {},
    roles.RoleUpdated: {"role": ROLE, "operations": [OPERATION]},
    roles.RolePasswordResponse: {"password": "hunter2"},
    roles.RoleResponse: {"role": ROLE},
    roles.RolesResponse: {"roles": [ROLE]},
    branches.BranchSchema: {},
    branches.BranchSchemaComparison: {},
    branches.ColumnSchema: COLUMN,
    branches.DatabaseSchema: {"tables": [TABLE]},
    branches.ReferencedTable: REFERENCED_TABLE,
    branches.TableConstraint: {"type": "unique", "columns": ["id"]},
    branches.TableSchema: TABLE,
    snapshots.BackupSchedule: {"schedule": []},
    snapshots.BackupScheduleItem: {"frequency": "daily"},
    snapshots.Snapshot: SNAPSHOT,
    snapshots.SnapshotCreated: {"snapshot": SNAPSHOT},
    snapshots.SnapshotResponse: {"snapshot": SNAPSHOT},
    snapshots.SnapshotRestored: {"branch": BRANCH, "operations": [OPERATION]},
    snapshots.SnapshotsResponse: {"snapshots": [SNAPSHOT]},
    users.AuthAccount: {},
    users.AuthDetails: {"account_id": "user-1", "auth_method": "api_key_user"},
    users.CurrentUser: {"id": "user-1", "email": "a@b.c"},
    organizations.VPCEndpoint: VPC_ENDPOINT,
    organizations.VPCEndpointDetails: VPC_ENDPOINT,
    organizations.VPCEndpointsResponse: {"endpoints": [VPC_ENDPOINT]},
    organizations.VPCEndpointsWithRegionResponse: {
        "endpoints": [{**VPC_ENDPOINT, "region_id": "aws-us-east-2"}]
    },
    organizations.VPCEndpointWithRegion: {**VPC_ENDPOINT, "region_id": "aws-us-east-2"},
}
"""The required fields of every record that responses contain."""

REQUEST_ONLY: list[type[Model]] = [
    endpoints.EndpointSpec,
    organizations.InvitationSpec,
    projects.ProjectBranchSpec,
]
"""The records that only requests contain."""


def decode(kind: type[T], content: object) -> T:
    """Return the result of a request whose response contains ``content`` as JSON."""
    call = request("GET", "/records", kind)
    return WIRE.read(call, "req-1", Response(200, {}, msgspec.json.encode(content)))
