"""What ``neon.projects`` does about permissions, transfers, key sets and VPC endpoints."""

import pytest

from neonctl_async import NeonClient, NotFoundError
from neonctl_async.local import LocalControlPlane
from neonctl_async.types import JWKS, JWKSCreated, ProjectPermission, TransferRequest, VPCEndpoint
from tests.models import records
from tests.models.records import OPERATION, PERMISSION, VPC_ENDPOINT, JsonObject, decode
from tests.resources.wire import Asked, Call, check

PATH = "/projects/p-1"
KEYS_URL = "https://id.example.com/keys"
ADDED: JsonObject = {"jwks": records.JWKS, "operations": [OPERATION]}
OFFER: JsonObject = {"id": "offer-1", "project_id": "p-1"}

CALLS = [
    Call(
        lambda neon: neon.projects.list_permissions("p-1"),
        asks=Asked("GET", f"{PATH}/permissions", {}, None),
        shown={"project_permissions": [PERMISSION]},
        gives=[decode(ProjectPermission, PERMISSION)],
    ),
    Call(
        lambda neon: neon.projects.grant_permission("p-1", email="ada@example.com"),
        asks=Asked("POST", f"{PATH}/permissions", {}, {"email": "ada@example.com"}),
        shown=PERMISSION,
        gives=decode(ProjectPermission, PERMISSION),
    ),
    Call(
        lambda neon: neon.projects.revoke_permission("p-1", "permission-1"),
        asks=Asked("DELETE", f"{PATH}/permissions/permission-1", {}, None),
        shown=PERMISSION,
        gives=decode(ProjectPermission, PERMISSION),
    ),
    Call(
        lambda neon: neon.projects.create_transfer_request("p-1"),
        asks=Asked("POST", f"{PATH}/transfer_requests", {}, None),
        shown=OFFER,
        gives=decode(TransferRequest, OFFER),
    ),
    Call(
        lambda neon: neon.projects.create_transfer_request("p-1", ttl_seconds=60),
        asks=Asked("POST", f"{PATH}/transfer_requests", {}, {"ttl_seconds": 60}),
        shown=OFFER,
        gives=decode(TransferRequest, OFFER),
    ),
    Call(
        lambda neon: neon.projects.accept_transfer_request("p-1", "offer-1"),
        asks=Asked("PUT", f"{PATH}/transfer_requests/offer-1", {}, None),
        shown=None,
        gives=None,
    ),
    Call(
        lambda neon: neon.projects.accept_transfer_request("p-1", "offer-1", org_id="org-1"),
        asks=Asked("PUT", f"{PATH}/transfer_requests/offer-1", {}, {"org_id": "org-1"}),
        shown=None,
        gives=None,
    ),
    Call(
        lambda neon: neon.projects.list_jwks("p-1"),
        asks=Asked("GET", f"{PATH}/jwks", {}, None),
        shown={"jwks": [records.JWKS]},
        gives=[decode(JWKS, records.JWKS)],
    ),
    Call(
        lambda neon: neon.projects.add_jwks("p-1", jwks_url=KEYS_URL, provider_name="Example"),
        asks=Asked("POST", f"{PATH}/jwks", {}, {"jwks_url": KEYS_URL, "provider_name": "Example"}),
        shown=ADDED,
        gives=decode(JWKSCreated, ADDED),
    ),
    Call(
        lambda neon: neon.projects.add_jwks(
            "p-1",
            jwks_url=KEYS_URL,
            provider_name="Example",
            branch_id="br-1",
            jwt_audience="shop",
            skip_role_creation=False,
        ),
        asks=Asked(
            "POST",
            f"{PATH}/jwks",
            {},
            {
                "jwks_url": KEYS_URL,
                "provider_name": "Example",
                "branch_id": "br-1",
                "jwt_audience": "shop",
                "skip_role_creation": False,
            },
        ),
        shown=ADDED,
        gives=decode(JWKSCreated, ADDED),
    ),
    Call(
        lambda neon: neon.projects.delete_jwks("p-1", "jwks-1"),
        asks=Asked("DELETE", f"{PATH}/jwks/jwks-1", {}, None),
        shown=records.JWKS,
        gives=decode(JWKS, records.JWKS),
    ),
    Call(
        lambda neon: neon.projects.list_vpc_endpoints("p-1"),
        asks=Asked("GET", f"{PATH}/vpc_endpoints", {}, None),
        shown={"endpoints": [VPC_ENDPOINT]},
        gives=[decode(VPCEndpoint, VPC_ENDPOINT)],
    ),
    Call(
        lambda neon: neon.projects.assign_vpc_endpoint("p-1", "vpce-1", label="office"),
        asks=Asked("POST", f"{PATH}/vpc_endpoints/vpce-1", {}, {"label": "office"}),
        shown=None,
        gives=None,
    ),
    Call(
        lambda neon: neon.projects.delete_vpc_endpoint("p-1", "vpce-1"),
        asks=Asked("DELETE", f"{PATH}/vpc_endpoints/vpce-1", {}, None),
        shown=None,
        gives=None,
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_what_it_asks_and_gives(call: Call) -> None:
    await check(call)


@pytest.mark.virtual_time
async def test_a_shared_project_is_reached_until_the_permission_is_revoked(
    neon: NeonClient, guest: NeonClient, project_id: str
) -> None:
    granted = await neon.projects.grant_permission(project_id, email="guest@example.com")
    assert await neon.projects.list_permissions(project_id) == [granted]
    assert [one.id for one in await guest.projects.list_shared().collect()] == [project_id]
    revoked = await neon.projects.revoke_permission(project_id, granted.id)
    assert revoked.revoked_at is not None
    with pytest.raises(NotFoundError):
        await guest.projects.get(project_id)


@pytest.mark.virtual_time
async def test_an_offered_project_belongs_to_whom_it_is_accepted_by(
    neon: NeonClient, guest: NeonClient, project_id: str
) -> None:
    offer = await neon.projects.create_transfer_request(project_id, ttl_seconds=60)
    assert offer.created_at is not None
    assert offer.expires_at is not None
    assert (offer.expires_at - offer.created_at).total_seconds() == 60
    await guest.projects.accept_transfer_request(project_id, offer.id)
    assert [one.id for one in await guest.projects.list().collect()] == [project_id]
    with pytest.raises(NotFoundError):
        await neon.projects.get(project_id)


@pytest.mark.virtual_time
async def test_a_key_set_comes_and_goes(neon: NeonClient, project_id: str) -> None:
    added = await neon.projects.add_jwks(
        project_id, jwks_url=KEYS_URL, provider_name="Example", wait=True
    )
    assert [(one.action, one.status) for one in added.operations] == [("apply_config", "finished")]
    assert await neon.projects.list_jwks(project_id) == [added.jwks]
    assert await neon.projects.delete_jwks(project_id, added.jwks.id) == added.jwks
    assert await neon.projects.list_jwks(project_id) == []


async def test_a_project_is_restricted_to_a_vpc_endpoint_of_its_organization(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    project = (await neon.projects.create(org_id=control_plane.org_id)).project
    await neon.organizations.assign_vpc_endpoint(
        control_plane.org_id, project.region_id, "vpce-1234567890abcdef0", label="office"
    )
    await neon.projects.assign_vpc_endpoint(project.id, "vpce-1234567890abcdef0", label="shop")
    restricted = await neon.projects.list_vpc_endpoints(project.id)
    assert restricted == [VPCEndpoint(vpc_endpoint_id="vpce-1234567890abcdef0", label="shop")]
    shown = await neon.organizations.get_vpc_endpoint(
        control_plane.org_id, project.region_id, "vpce-1234567890abcdef0"
    )
    assert shown.example_restricted_projects == [project.id]
    await neon.projects.delete_vpc_endpoint(project.id, "vpce-1234567890abcdef0")
    assert await neon.projects.list_vpc_endpoints(project.id) == []
