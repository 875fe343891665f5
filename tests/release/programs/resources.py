"""Every method of the resources, called by a user: never run, checked by ``make dist``."""

from datetime import UTC, datetime
from typing import assert_type

import neonctl_async as api
from neonctl_async import NeonClient

PROJECT, BRANCH, COMPUTE, ORG = "late-frost-12345678", "br-1", "ep-1", "org-1"
NOW = datetime.now(UTC)


async def operations(neon: NeonClient) -> None:
    assert_type(await neon.operations.get(PROJECT, "op-1"), api.Operation)
    assert_type(neon.operations.list(PROJECT), api.Paginator[api.Operation])


async def projects(neon: NeonClient) -> None:
    await neon.projects.accept_transfer_request(PROJECT, "request")
    assert_type(
        await neon.projects.add_jwks(PROJECT, jwks_url="jwks_url", provider_name="provider"),
        api.JWKSOperations,
    )
    await neon.projects.assign_vpc_endpoint(PROJECT, "vpc_endpoint", label="label")
    assert_type(
        await neon.projects.connection_uri(PROJECT, database_name="database", role_name="role"),
        api.Secret,
    )
    assert_type(await neon.projects.create(), api.ProjectCreated)
    assert_type(await neon.projects.create_transfer_request(PROJECT), api.TransferRequest)
    assert_type(await neon.projects.delete(PROJECT), api.ProjectDeleted)
    assert_type(await neon.projects.delete_jwks(PROJECT, "jwks"), api.JWKS)
    await neon.projects.delete_vpc_endpoint(PROJECT, "vpc_endpoint")
    assert_type(await neon.projects.get(PROJECT), api.Project)
    assert_type(await neon.projects.grant_permission(PROJECT, email="email"), api.ProjectPermission)
    assert_type(await neon.projects.list_advisor_issues(PROJECT), list[api.AdvisorIssue])
    assert_type(await neon.projects.list_jwks(PROJECT), list[api.JWKS])
    assert_type(await neon.projects.list_permissions(PROJECT), list[api.ProjectPermission])
    assert_type(
        await neon.projects.list_preload_libraries(PROJECT), list[api.AvailablePreloadLibrary]
    )
    assert_type(neon.projects.list_shared(), api.Paginator[api.Project])
    assert_type(await neon.projects.list_vpc_endpoints(PROJECT), list[api.VPCEndpoint])
    assert_type(await neon.projects.recover(PROJECT), api.ProjectRecovered)
    assert_type(await neon.projects.revoke_permission(PROJECT, "permission"), api.ProjectPermission)
    assert_type(await neon.projects.update(PROJECT), api.ProjectOperations)


async def branches(neon: NeonClient) -> None:
    assert_type(await neon.branches.anonymize(PROJECT, BRANCH), api.AnonymizedBranchStatus)
    assert_type(await neon.branches.anonymized_status(PROJECT, BRANCH), api.AnonymizedBranchStatus)
    assert_type(
        await neon.branches.compare_schema(PROJECT, BRANCH, db_name="db"),
        api.BranchSchemaComparison,
    )
    assert_type(await neon.branches.count(PROJECT), int)
    assert_type(await neon.branches.create(PROJECT), api.BranchCreated)
    assert_type(await neon.branches.create_anonymized(PROJECT), api.BranchCreated)
    assert_type(await neon.branches.default(PROJECT), api.Branch)
    assert_type(await neon.branches.delete(PROJECT, BRANCH), api.BranchDeleted)
    assert_type(await neon.branches.finalize_restore(PROJECT, BRANCH), api.Started)
    assert_type(await neon.branches.get(PROJECT, BRANCH), api.Branch)
    assert_type(neon.branches.list(PROJECT), api.Paginator[api.Branch])
    assert_type(await neon.branches.list_endpoints(PROJECT, BRANCH), list[api.Endpoint])
    assert_type(await neon.branches.list_masking_rules(PROJECT, BRANCH), list[api.MaskingRule])
    assert_type(await neon.branches.recover(PROJECT, BRANCH), api.BranchRecovered)
    assert_type(await neon.branches.reset_from_parent(PROJECT, BRANCH), api.BranchOperations)
    assert_type(
        await neon.branches.restore(PROJECT, BRANCH, source_branch_id="source_branch"),
        api.BranchOperations,
    )
    assert_type(await neon.branches.schema(PROJECT, BRANCH, db_name="db"), api.BranchSchema)
    assert_type(await neon.branches.set_as_default(PROJECT, BRANCH), api.BranchOperations)
    assert_type(await neon.branches.update(PROJECT, BRANCH), api.BranchOperations)
    assert_type(
        await neon.branches.update_masking_rules(PROJECT, BRANCH, masking_rules=[]),
        list[api.MaskingRule],
    )


async def endpoints(neon: NeonClient) -> None:
    assert_type(
        await neon.endpoints.create(PROJECT, branch_id="branch", type="type"),
        api.EndpointOperations,
    )
    assert_type(await neon.endpoints.delete(PROJECT, COMPUTE), api.EndpointDeleted)
    assert_type(await neon.endpoints.get(PROJECT, COMPUTE), api.Endpoint)
    assert_type(await neon.endpoints.list(PROJECT), list[api.Endpoint])
    assert_type(await neon.endpoints.restart(PROJECT, COMPUTE), api.EndpointOperations)
    assert_type(await neon.endpoints.start(PROJECT, COMPUTE), api.EndpointOperations)
    assert_type(await neon.endpoints.suspend(PROJECT, COMPUTE), api.EndpointOperations)
    assert_type(await neon.endpoints.update(PROJECT, COMPUTE), api.EndpointOperations)


async def databases(neon: NeonClient) -> None:
    assert_type(
        await neon.databases.create(PROJECT, BRANCH, name="name", owner_name="owner"),
        api.DatabaseOperations,
    )
    assert_type(await neon.databases.delete(PROJECT, BRANCH, "database"), api.DatabaseDeleted)
    assert_type(await neon.databases.get(PROJECT, BRANCH, "database"), api.Database)
    assert_type(await neon.databases.list(PROJECT, BRANCH), list[api.Database])
    assert_type(await neon.databases.update(PROJECT, BRANCH, "database"), api.DatabaseOperations)


async def roles(neon: NeonClient) -> None:
    assert_type(await neon.roles.create(PROJECT, BRANCH, name="name"), api.RoleOperations)
    assert_type(await neon.roles.delete(PROJECT, BRANCH, "role"), api.RoleDeleted)
    assert_type(await neon.roles.get(PROJECT, BRANCH, "role"), api.Role)
    assert_type(await neon.roles.list(PROJECT, BRANCH), list[api.Role])
    assert_type(await neon.roles.reset_password(PROJECT, BRANCH, "role"), api.RoleOperations)
    assert_type(await neon.roles.reveal_password(PROJECT, BRANCH, "role"), api.Secret)


async def snapshots(neon: NeonClient) -> None:
    assert_type(await neon.snapshots.create(PROJECT, BRANCH), api.SnapshotCreated)
    assert_type(await neon.snapshots.delete(PROJECT, "snapshot"), api.Started)
    assert_type(await neon.snapshots.get_schedule(PROJECT, BRANCH), api.BackupSchedule)
    assert_type(await neon.snapshots.list(PROJECT), list[api.Snapshot])
    assert_type(await neon.snapshots.restore(PROJECT, "snapshot"), api.SnapshotRestored)
    await neon.snapshots.set_schedule(PROJECT, BRANCH, schedule=[])
    assert_type(await neon.snapshots.update(PROJECT, "snapshot"), api.Snapshot)


async def organizations(neon: NeonClient) -> None:
    await neon.organizations.assign_vpc_endpoint(ORG, "region", "vpc_endpoint", label="label")
    assert_type(await neon.organizations.create_api_key(ORG, key_name="key"), api.ApiKeyCreated)
    assert_type(
        await neon.organizations.create_invitations(ORG, invitations=[]), list[api.Invitation]
    )
    await neon.organizations.delete_spending_limit(ORG)
    await neon.organizations.delete_vpc_endpoint(ORG, "region", "vpc_endpoint")
    assert_type(await neon.organizations.get(ORG), api.Organization)
    assert_type(await neon.organizations.get_member(ORG, "member"), api.Member)
    assert_type(await neon.organizations.get_spending_limit(ORG), api.SpendingLimit)
    assert_type(
        await neon.organizations.get_vpc_endpoint(ORG, "region", "vpc_endpoint"),
        api.VPCEndpointDetails,
    )
    assert_type(await neon.organizations.list_api_keys(ORG), list[api.ApiKey])
    assert_type(await neon.organizations.list_invitations(ORG), list[api.Invitation])
    assert_type(neon.organizations.list_members(ORG), api.Paginator[api.MemberWithUser])
    assert_type(
        await neon.organizations.list_region_vpc_endpoints(ORG, "region"), list[api.VPCEndpoint]
    )
    assert_type(await neon.organizations.list_vpc_endpoints(ORG), list[api.VPCEndpointWithRegion])
    await neon.organizations.remove_member(ORG, "member")
    assert_type(await neon.organizations.revoke_api_key(ORG, 1), api.ApiKeyRevoked)
    assert_type(
        await neon.organizations.set_spending_limit(ORG, spending_limit_cents=1), api.SpendingLimit
    )
    await neon.organizations.transfer_projects(
        ORG, destination_org_id="destination_org", project_ids=["x"]
    )
    assert_type(await neon.organizations.update_member(ORG, "member", role="role"), api.Member)


async def api_keys(neon: NeonClient) -> None:
    assert_type(await neon.api_keys.create(key_name="key"), api.ApiKeyCreated)
    assert_type(await neon.api_keys.list(), list[api.ApiKey])
    assert_type(await neon.api_keys.revoke(1), api.ApiKeyRevoked)


async def users(neon: NeonClient) -> None:
    assert_type(await neon.users.auth_details(), api.AuthDetails)
    assert_type(await neon.users.me(), api.CurrentUser)
    assert_type(await neon.users.organizations(), list[api.Organization])


async def regions(neon: NeonClient) -> None:
    assert_type(await neon.regions.list(), list[api.Region])


async def consumption(neon: NeonClient) -> None:
    assert_type(
        neon.consumption.branches_v2(
            org_id="org", project_ids=["x"], from_=NOW, to=NOW, granularity="daily", metrics=["x"]
        ),
        api.Paginator[api.BranchMetrics],
    )
    assert_type(
        neon.consumption.projects(from_=NOW, to=NOW, granularity="daily"),
        api.Paginator[api.ProjectConsumption],
    )
    assert_type(
        neon.consumption.projects_v2(
            org_id="org", from_=NOW, to=NOW, granularity="daily", metrics=["x"]
        ),
        api.Paginator[api.ProjectMetrics],
    )
