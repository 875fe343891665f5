"""The methods of ``neon.projects`` that control access to a project."""

from typing import Any

import pytest

from neonctl_async import NeonClient, NotFoundError
from neonctl_async.types import (
    JWKS,
    JWKSCreated,
    ProjectMember,
    ProjectMemberUpdated,
    ProjectPermission,
    TransferRequest,
    VPCEndpoint,
)
from neonctl_local import LocalControlPlane
from tests.models import records
from tests.models.records import OPERATION, PERMISSION, PROJECT_MEMBER, VPC_ENDPOINT
from tests.resources.wire import Call, no_content, record, records_in

PATH = "/projects/p-1"
PROVIDER: dict[str, Any] = {
    "jwks_url": "https://id.example.com/keys",
    "provider_name": "Example",
}
KEYS: dict[str, Any] = {
    **PROVIDER,
    "branch_id": "br-1",
    "jwt_audience": "shop",
    "skip_role_creation": False,
}
MEMBERS = records_in(
    "project_members",
    ProjectMember,
    {
        **PROJECT_MEMBER,
        "email": "ada@example.com",
        "name": "Ada",
        "project_role": "editor",
        "explicit_project_permission": "EDITOR",
        "grant_source": "explicit",
    },
)
MEMBER_UPDATED = record(
    ProjectMemberUpdated,
    {**PROJECT_MEMBER, "project_id": "p-1", "credential_rotation_recommended": True},
)
GRANTED = record(ProjectPermission, PERMISSION)
OFFERED = record(TransferRequest, {"id": "offer-1", "project_id": "p-1"})
KEYS_ADDED = record(JWKSCreated, {"jwks": records.JWKS, "operations": [OPERATION]})
LISTED = records_in("project_permissions", ProjectPermission, PERMISSION)
KEYS_LISTED = records_in("jwks", JWKS, records.JWKS)
ENDPOINTS = records_in("endpoints", VPCEndpoint, VPC_ENDPOINT)

CALLS = [
    Call(lambda neon: neon.projects.list_permissions("p-1"), f"GET {PATH}/permissions", LISTED),
    Call(
        lambda neon: neon.projects.grant_permission("p-1", email="ada@example.com"),
        f"POST {PATH}/permissions",
        GRANTED,
        body={"email": "ada@example.com"},
    ),
    Call(
        lambda neon: neon.projects.revoke_permission("p-1", "permission-1"),
        f"DELETE {PATH}/permissions/permission-1",
        GRANTED,
    ),
    Call(lambda neon: neon.projects.list_members("p-1").collect(), f"GET {PATH}/members", MEMBERS),
    Call(
        lambda neon: neon.projects.list_members("p-1", limit=50).collect(),
        f"GET {PATH}/members",
        MEMBERS,
        query={"limit": "50"},
    ),
    Call(
        lambda neon: neon.projects.set_member_role("p-1", "m-1", role="editor"),
        f"PUT {PATH}/members/m-1/role",
        MEMBER_UPDATED,
        body={"role": "editor"},
    ),
    Call(
        lambda neon: neon.projects.set_member_role(
            "p-1", "m-1", role="viewer", confirm_self_demotion=True
        ),
        f"PUT {PATH}/members/m-1/role",
        MEMBER_UPDATED,
        query={"confirm_self_demotion": "true"},
        body={"role": "viewer"},
    ),
    Call(
        lambda neon: neon.projects.remove_member_role("p-1", "m-1"),
        f"DELETE {PATH}/members/m-1/role",
        MEMBER_UPDATED,
    ),
    Call(
        lambda neon: neon.projects.remove_member_role("p-1", "m-1", confirm_self_lockout=False),
        f"DELETE {PATH}/members/m-1/role",
        MEMBER_UPDATED,
        query={"confirm_self_lockout": "false"},
    ),
    Call(
        lambda neon: neon.projects.create_transfer_request("p-1"),
        f"POST {PATH}/transfer_requests",
        OFFERED,
    ),
    Call(
        lambda neon: neon.projects.create_transfer_request("p-1", ttl_seconds=60),
        f"POST {PATH}/transfer_requests",
        OFFERED,
        body={"ttl_seconds": 60},
    ),
    Call(
        lambda neon: neon.projects.accept_transfer_request("p-1", "offer-1"),
        f"PUT {PATH}/transfer_requests/offer-1",
        no_content(),
    ),
    Call(
        lambda neon: neon.projects.accept_transfer_request("p-1", "offer-1", org_id="org-1"),
        f"PUT {PATH}/transfer_requests/offer-1",
        no_content(),
        body={"org_id": "org-1"},
    ),
    Call(lambda neon: neon.projects.list_jwks("p-1"), f"GET {PATH}/jwks", KEYS_LISTED),
    Call(
        lambda neon: neon.projects.add_jwks("p-1", **PROVIDER),
        f"POST {PATH}/jwks",
        KEYS_ADDED,
        body=PROVIDER,
    ),
    Call(
        lambda neon: neon.projects.add_jwks("p-1", **KEYS),
        f"POST {PATH}/jwks",
        KEYS_ADDED,
        body=KEYS,
    ),
    Call(
        lambda neon: neon.projects.delete_jwks("p-1", "jwks-1"),
        f"DELETE {PATH}/jwks/jwks-1",
        record(JWKS, records.JWKS),
    ),
    Call(
        lambda neon: neon.projects.list_vpc_endpoints("p-1"), f"GET {PATH}/vpc_endpoints", ENDPOINTS
    ),
    Call(
        lambda neon: neon.projects.assign_vpc_endpoint("p-1", "vpce-1", label="office"),
        f"POST {PATH}/vpc_endpoints/vpce-1",
        no_content(),
        body={"label": "office"},
    ),
    Call(
        lambda neon: neon.projects.delete_vpc_endpoint("p-1", "vpce-1"),
        f"DELETE {PATH}/vpc_endpoints/vpce-1",
        no_content(),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


@pytest.mark.virtual_time
async def test_permission_gives_access_until_it_is_revoked(
    neon: NeonClient, guest: NeonClient, project_id: str
) -> None:
    granted = await neon.projects.grant_permission(project_id, email="guest@example.com")
    assert await neon.projects.list_permissions(project_id) == [granted]
    assert [record.id for record in await guest.projects.list_shared().collect()] == [project_id]
    revoked = await neon.projects.revoke_permission(project_id, granted.id)
    assert revoked.revoked_at is not None
    with pytest.raises(NotFoundError):
        await guest.projects.get(project_id)


@pytest.mark.virtual_time
async def test_offered_project_moves_to_the_account_that_accepts_it(
    neon: NeonClient, guest: NeonClient, project_id: str
) -> None:
    offer = await neon.projects.create_transfer_request(project_id, ttl_seconds=60)
    assert offer.created_at is not None
    assert offer.expires_at is not None
    assert (offer.expires_at - offer.created_at).total_seconds() == 60
    await guest.projects.accept_transfer_request(project_id, offer.id)
    assert [record.id for record in await guest.projects.list().collect()] == [project_id]
    with pytest.raises(NotFoundError):
        await neon.projects.get(project_id)


@pytest.mark.virtual_time
async def test_key_set_is_added_and_deleted(neon: NeonClient, project_id: str) -> None:
    added = await neon.projects.add_jwks(project_id, **PROVIDER, wait=True)
    assert [(record.action, record.status) for record in added.operations] == [
        ("apply_config", "finished")
    ]
    assert await neon.projects.list_jwks(project_id) == [added.jwks]
    assert await neon.projects.delete_jwks(project_id, added.jwks.id) == added.jwks
    assert await neon.projects.list_jwks(project_id) == []


async def test_project_is_restricted_to_a_vpc_endpoint_of_its_organization(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    project = (await neon.projects.create(org_id=control_plane.org_id)).project
    await neon.organizations.assign_vpc_endpoint(
        control_plane.org_id, project.region_id, "vpce-1234567890abcdef0", label="office"
    )
    await neon.projects.assign_vpc_endpoint(project.id, "vpce-1234567890abcdef0", label="shop")
    restricted = await neon.projects.list_vpc_endpoints(project.id)
    assert restricted == [VPCEndpoint(vpc_endpoint_id="vpce-1234567890abcdef0", label="shop")]
    content = await neon.organizations.get_vpc_endpoint(
        control_plane.org_id, project.region_id, "vpce-1234567890abcdef0"
    )
    assert content.example_restricted_projects == [project.id]
    await neon.projects.delete_vpc_endpoint(project.id, "vpce-1234567890abcdef0")
    assert await neon.projects.list_vpc_endpoints(project.id) == []
