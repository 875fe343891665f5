"""Every method of the resources, called by a user: never run, checked by ``make dist``."""

from datetime import UTC, datetime
from typing import assert_type

import neonctl_async as api
from neonctl_async import NeonClient, types

PROJECT, BRANCH, COMPUTE, ORG = "late-frost-12345678", "br-1", "ep-1", "org-1"
NOW = datetime.now(UTC)


async def operations(neon: NeonClient) -> None:
    assert_type(await neon.operations.get(PROJECT, "op-1"), api.Operation)
    assert_type(neon.operations.list(PROJECT), api.Paginator[api.Operation])
    assert_type(await neon.operations.wait_for_project(PROJECT), list[api.Operation])


async def projects(neon: NeonClient) -> None:
    await neon.projects.accept_transfer_request(PROJECT, "request")
    assert_type(
        await neon.projects.add_jwks(PROJECT, jwks_url="jwks_url", provider_name="provider"),
        types.JWKSCreated,
    )
    await neon.projects.assign_vpc_endpoint(PROJECT, "vpc_endpoint", label="label")
    assert_type(
        await neon.projects.connection_uri(PROJECT, database_name="database", role_name="role"),
        api.ConnectionUri,
    )
    assert_type(await neon.projects.create(), types.ProjectCreated)
    assert_type(await neon.projects.create_transfer_request(PROJECT), types.TransferRequest)
    assert_type(await neon.projects.delete(PROJECT), types.ProjectDeleted)
    assert_type(await neon.projects.delete_jwks(PROJECT, "jwks"), types.JWKS)
    await neon.projects.delete_vpc_endpoint(PROJECT, "vpc_endpoint")
    assert_type(await neon.projects.get(PROJECT), types.Project)
    assert_type(
        await neon.projects.grant_permission(PROJECT, email="email"), types.ProjectPermission
    )
    assert_type(await neon.projects.list_advisor_issues(PROJECT), list[types.AdvisorIssue])
    assert_type(await neon.projects.list_jwks(PROJECT), list[types.JWKS])
    assert_type(await neon.projects.list_permissions(PROJECT), list[types.ProjectPermission])
    assert_type(
        await neon.projects.list_preload_libraries(PROJECT), list[types.AvailablePreloadLibrary]
    )
    assert_type(neon.projects.list_shared(), api.Paginator[types.Project])
    assert_type(await neon.projects.list_vpc_endpoints(PROJECT), list[types.VPCEndpoint])
    assert_type(await neon.projects.recover(PROJECT), types.ProjectRecovered)
    assert_type(
        await neon.projects.revoke_permission(PROJECT, "permission"), types.ProjectPermission
    )
    assert_type(await neon.projects.update(PROJECT), types.ProjectUpdated)
    assert_type(await neon.projects.wait_for(PROJECT), types.Project)
    await neon.projects.wait_for(PROJECT, "deleted")


async def branches(neon: NeonClient) -> None:
    assert_type(await neon.branches.anonymize(PROJECT, BRANCH), types.AnonymizedBranchStatus)
    assert_type(
        await neon.branches.anonymized_status(PROJECT, BRANCH), types.AnonymizedBranchStatus
    )
    assert_type(
        await neon.branches.compare_schema(PROJECT, BRANCH, db_name="db"),
        types.BranchSchemaComparison,
    )
    assert_type(await neon.branches.connection_uri(PROJECT, BRANCH), api.ConnectionUri)
    assert_type(await neon.branches.count(PROJECT), int)
    assert_type(await neon.branches.create(PROJECT), types.BranchCreated)
    assert_type(await neon.branches.create_anonymized(PROJECT), types.BranchCreated)
    assert_type(await neon.branches.default(PROJECT), types.Branch)
    assert_type(await neon.branches.find(PROJECT, "preview"), types.Branch)
    assert_type(await neon.projects.find("shop"), types.Project)
    assert_type(await neon.endpoints.find(PROJECT, "worker"), types.Endpoint)
    assert_type(await neon.snapshots.find(PROJECT, "before"), types.Snapshot)
    assert_type(await neon.branches.delete(PROJECT, BRANCH), types.BranchDeleted)
    assert_type(
        await neon.branches.ensure(PROJECT, name="preview", wait="connect"), types.EnsuredBranch
    )
    assert_type(await neon.branches.finalize_restore(PROJECT, BRANCH), types.OperationsResponse)
    assert_type(await neon.branches.get(PROJECT, BRANCH), types.Branch)
    assert_type(neon.branches.list(PROJECT), api.Paginator[types.Branch])
    assert_type(await neon.branches.list_endpoints(PROJECT, BRANCH), list[types.Endpoint])
    assert_type(await neon.branches.list_masking_rules(PROJECT, BRANCH), list[types.MaskingRule])
    assert_type(await neon.branches.prune(PROJECT, name_prefix="preview/"), types.PruneReport)
    assert_type(await neon.branches.recover(PROJECT, BRANCH), types.BranchRecovered)
    assert_type(await neon.branches.reset_from_parent(PROJECT, BRANCH), types.BranchUpdated)
    assert_type(
        await neon.branches.restore(PROJECT, BRANCH, source_branch_id="source_branch"),
        types.BranchUpdated,
    )
    assert_type(await neon.branches.schema(PROJECT, BRANCH, db_name="db"), types.BranchSchema)
    assert_type(await neon.branches.set_as_default(PROJECT, BRANCH), types.BranchUpdated)
    assert_type(await neon.branches.update(PROJECT, BRANCH), types.BranchUpdated)
    assert_type(await neon.branches.wait_for(PROJECT, BRANCH, timeout=60.0), types.Branch)
    assert_type(await neon.branches.wait_for(PROJECT, BRANCH, "archived"), types.Branch)
    assert_type(
        await neon.branches.wait_for(PROJECT, BRANCH, types.EndpointState.INIT), types.Branch | None
    )
    await neon.branches.wait_for(PROJECT, BRANCH, "deleted")
    assert_type(
        await neon.branches.update_masking_rules(PROJECT, BRANCH, masking_rules=[]),
        list[types.MaskingRule],
    )


async def endpoints(neon: NeonClient) -> None:
    assert_type(
        await neon.endpoints.create(PROJECT, branch_id="branch", type="read_only"),
        types.EndpointUpdated,
    )
    assert_type(await neon.endpoints.delete(PROJECT, COMPUTE), types.EndpointDeleted)
    assert_type(await neon.endpoints.get(PROJECT, COMPUTE), types.Endpoint)
    assert_type(await neon.endpoints.list(PROJECT), list[types.Endpoint])
    assert_type(await neon.endpoints.restart(PROJECT, COMPUTE), types.EndpointUpdated)
    assert_type(await neon.endpoints.start(PROJECT, COMPUTE), types.EndpointUpdated)
    assert_type(await neon.endpoints.suspend(PROJECT, COMPUTE), types.EndpointUpdated)
    assert_type(await neon.endpoints.update(PROJECT, COMPUTE), types.EndpointUpdated)
    assert_type(
        await neon.endpoints.ensure(PROJECT, branch_id=BRANCH, type="read_write"),
        types.EnsuredEndpoint,
    )
    assert_type(await neon.endpoints.wait_connectable(PROJECT, COMPUTE), types.Endpoint)
    assert_type(await neon.endpoints.wait_for(PROJECT, COMPUTE, timeout=None), types.Endpoint)
    await neon.endpoints.wait_for(PROJECT, COMPUTE, "deleted")


async def databases(neon: NeonClient) -> None:
    assert_type(
        await neon.databases.ensure(PROJECT, BRANCH, name="orders", owner_name="owner"),
        types.EnsuredDatabase,
    )
    assert_type(
        await neon.databases.create(PROJECT, BRANCH, name="name", owner_name="owner"),
        types.DatabaseUpdated,
    )
    assert_type(await neon.databases.delete(PROJECT, BRANCH, "database"), types.DatabaseDeleted)
    assert_type(await neon.databases.get(PROJECT, BRANCH, "database"), types.Database)
    assert_type(await neon.databases.list(PROJECT, BRANCH), list[types.Database])
    assert_type(await neon.databases.update(PROJECT, BRANCH, "database"), types.DatabaseUpdated)


async def roles(neon: NeonClient) -> None:
    assert_type(await neon.roles.ensure(PROJECT, BRANCH, name="app"), types.EnsuredRole)
    assert_type(await neon.roles.create(PROJECT, BRANCH, name="name"), types.RoleUpdated)
    assert_type(await neon.roles.delete(PROJECT, BRANCH, "role"), types.RoleDeleted)
    assert_type(await neon.roles.get(PROJECT, BRANCH, "role"), types.Role)
    assert_type(await neon.roles.list(PROJECT, BRANCH), list[types.Role])
    assert_type(await neon.roles.reset_password(PROJECT, BRANCH, "role"), types.RoleUpdated)
    assert_type(await neon.roles.reveal_password(PROJECT, BRANCH, "role"), api.Secret)


async def snapshots(neon: NeonClient) -> None:
    assert_type(await neon.snapshots.create(PROJECT, BRANCH), types.SnapshotCreated)
    assert_type(await neon.snapshots.delete(PROJECT, "snapshot"), types.OperationsResponse)
    assert_type(await neon.snapshots.get_schedule(PROJECT, BRANCH), types.BackupSchedule)
    assert_type(await neon.snapshots.list(PROJECT), list[types.Snapshot])
    assert_type(await neon.snapshots.restore(PROJECT, "snapshot"), types.SnapshotRestored)
    await neon.snapshots.set_schedule(PROJECT, BRANCH, schedule=[])
    assert_type(await neon.snapshots.update(PROJECT, "snapshot"), types.Snapshot)


async def organizations(neon: NeonClient) -> None:
    await neon.organizations.assign_vpc_endpoint(ORG, "region", "vpc_endpoint", label="label")
    assert_type(await neon.organizations.create_api_key(ORG, key_name="key"), types.ApiKeyCreated)
    assert_type(
        await neon.organizations.create_invitations(ORG, invitations=[]), list[types.Invitation]
    )
    await neon.organizations.delete_spending_limit(ORG)
    await neon.organizations.delete_vpc_endpoint(ORG, "region", "vpc_endpoint")
    assert_type(await neon.organizations.get(ORG), types.Organization)
    assert_type(await neon.organizations.get_member(ORG, "member"), types.Member)
    assert_type(await neon.organizations.get_spending_limit(ORG), types.SpendingLimit)
    assert_type(
        await neon.organizations.get_vpc_endpoint(ORG, "region", "vpc_endpoint"),
        types.VPCEndpointDetails,
    )
    assert_type(await neon.organizations.list_api_keys(ORG), list[types.ApiKey])
    assert_type(await neon.organizations.list_invitations(ORG), list[types.Invitation])
    assert_type(neon.organizations.list_members(ORG), api.Paginator[types.MemberWithUser])
    assert_type(
        await neon.organizations.list_region_vpc_endpoints(ORG, "region"), list[types.VPCEndpoint]
    )
    assert_type(await neon.organizations.list_vpc_endpoints(ORG), list[types.VPCEndpointWithRegion])
    await neon.organizations.remove_member(ORG, "member")
    assert_type(await neon.organizations.revoke_api_key(ORG, 1), types.ApiKeyRevoked)
    assert_type(
        await neon.organizations.set_spending_limit(ORG, spending_limit_cents=1),
        types.SpendingLimit,
    )
    await neon.organizations.transfer_projects(
        ORG, destination_org_id="destination_org", project_ids=["x"]
    )
    assert_type(await neon.organizations.update_member(ORG, "member", role="role"), types.Member)


async def api_keys(neon: NeonClient) -> None:
    assert_type(await neon.api_keys.create(key_name="key"), types.ApiKeyCreated)
    assert_type(await neon.api_keys.list(), list[types.ApiKey])
    assert_type(await neon.api_keys.revoke(1), types.ApiKeyRevoked)


async def users(neon: NeonClient) -> None:
    assert_type(await neon.users.auth_details(), types.AuthDetails)
    assert_type(await neon.users.me(), types.CurrentUser)
    assert_type(await neon.users.organizations(), list[types.Organization])


async def regions(neon: NeonClient) -> None:
    assert_type(await neon.regions.list(), list[types.Region])


async def consumption(neon: NeonClient) -> None:
    assert_type(
        neon.consumption.branches_v2(
            org_id="org", project_ids=["x"], from_=NOW, to=NOW, granularity="daily", metrics=["x"]
        ),
        api.Paginator[types.BranchMetrics],
    )
    assert_type(
        neon.consumption.projects(from_=NOW, to=NOW, granularity="daily"),
        api.Paginator[types.ProjectConsumption],
    )
    assert_type(
        neon.consumption.projects_v2(
            org_id="org", from_=NOW, to=NOW, granularity="daily", metrics=["x"]
        ),
        api.Paginator[types.ProjectMetrics],
    )


async def storage(neon: NeonClient) -> None:
    assert_type(
        await neon.storage.create_bucket(PROJECT, BRANCH, name="bucket"),
        types.Bucket,
    )
    await neon.storage.delete_bucket(PROJECT, BRANCH, "bucket")
    await neon.storage.delete_object(PROJECT, BRANCH, "bucket", "key")
    assert_type(await neon.storage.delete_objects(PROJECT, BRANCH, "bucket", prefix="a/"), int)
    async with neon.storage.download(PROJECT, BRANCH, "bucket", "key") as download:
        assert_type(download, types.Download)
        assert_type([part async for part in download], list[bytes])
    assert_type(await neon.storage.get(PROJECT, BRANCH), types.BranchStorage)
    assert_type(await neon.storage.list_buckets(PROJECT, BRANCH), list[types.Bucket])
    assert_type(
        neon.storage.list_objects(PROJECT, BRANCH, "bucket"), api.Paginator[types.BucketObject]
    )
    assert_type(
        neon.storage.list_objects(PROJECT, BRANCH, "bucket", delimiter="/"),
        api.Paginator[types.BucketObject | types.BucketFolder],
    )
    assert_type(
        await neon.storage.presign(PROJECT, BRANCH, "bucket", "key", operation="upload"),
        types.PresignedRequest,
    )


async def functions(neon: NeonClient) -> None:
    await neon.functions.delete(PROJECT, BRANCH, "slug")
    assert_type(
        await neon.functions.deploy(PROJECT, BRANCH, "slug", zip=b"zip"), types.FunctionDeployment
    )
    assert_type(await neon.functions.get(PROJECT, BRANCH, "slug"), types.NeonFunction)
    assert_type(neon.functions.list(PROJECT, BRANCH), api.Paginator[types.NeonFunction])
    assert_type(
        await neon.functions.update(PROJECT, BRANCH, "slug", name="name"), types.NeonFunction
    )
