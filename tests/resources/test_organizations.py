import pytest

from neonctl_async import NeonClient, NotFoundError, Secret
from neonctl_async.types import (
    ApiKey,
    ApiKeyCreated,
    ApiKeyRevoked,
    Invitation,
    InvitationSpec,
    Member,
    MemberRole,
    MemberWithUser,
    Organization,
    SpendingLimit,
    VPCEndpoint,
    VPCEndpointDetails,
    VPCEndpointWithRegion,
)
from neonctl_local import LocalControlPlane
from tests.models.records import (
    INVITATION,
    MEMBER,
    MEMBER_WITH_USER,
    ORGANIZATION,
    VPC_ENDPOINT,
    JsonObject,
)
from tests.resources.wire import (
    Call,
    Response,
    no_content,
    record,
    records_in,
    responding_in_sequence,
)

PATH = "/organizations/org-1"
LIMIT = f"{PATH}/billing/spending_limit"
VPC = f"{PATH}/vpc/region/aws-us-east-2/vpc_endpoints"
VPC_ENDPOINT_WITH_REGION: JsonObject = {**VPC_ENDPOINT, "region_id": "aws-us-east-2"}
DONE = Response({}, None)
ONE_MEMBER = record(Member, MEMBER)
INVITATIONS = records_in("invitations", Invitation, INVITATION)
FOUND = record(Organization, ORGANIZATION)
NO_LIMIT = Response({"spending_limit_cents": None}, SpendingLimit(spending_limit_cents=None))

CALLS = [
    Call(lambda neon: neon.organizations.get("org-1"), f"GET {PATH}", FOUND),
    Call(
        lambda neon: neon.organizations.list_members("org-1").collect(),
        f"GET {PATH}/members",
        records_in("members", MemberWithUser, MEMBER_WITH_USER),
    ),
    Call(
        lambda neon: neon.organizations.list_members(
            "org-1", limit=500, sort_by="email", sort_order="asc"
        ).collect(),
        f"GET {PATH}/members",
        Response({"members": []}, []),
        query={"limit": "500", "sort_by": "email", "sort_order": "asc"},
    ),
    Call(
        lambda neon: neon.organizations.get_member("org-1", "m-1"),
        f"GET {PATH}/members/m-1",
        ONE_MEMBER,
    ),
    Call(
        lambda neon: neon.organizations.update_member("org-1", "m-1", role=MemberRole.ADMIN),
        f"PATCH {PATH}/members/m-1",
        ONE_MEMBER,
        body={"role": "admin"},
    ),
    Call(
        lambda neon: neon.organizations.remove_member("org-1", "m-1"),
        f"DELETE {PATH}/members/m-1",
        DONE,
    ),
    Call(
        lambda neon: neon.organizations.list_invitations("org-1"),
        f"GET {PATH}/invitations",
        INVITATIONS,
    ),
    Call(
        lambda neon: neon.organizations.create_invitations(
            "org-1", invitations=(InvitationSpec(email="ada@example.com", role="member"),)
        ),
        f"POST {PATH}/invitations",
        INVITATIONS,
        body={"invitations": [{"email": "ada@example.com", "role": "member"}]},
    ),
    Call(
        lambda neon: neon.organizations.list_api_keys("org-1"),
        f"GET {PATH}/api_keys",
        Response(
            [{"id": 1, "name": "ci", "project_id": "p-1"}],
            [ApiKey(id=1, name="ci", project_id="p-1")],
        ),
    ),
    Call(
        lambda neon: neon.organizations.create_api_key("org-1", key_name="ci"),
        f"POST {PATH}/api_keys",
        Response(
            {"id": 1, "key": "neon_org_key_1"}, ApiKeyCreated(id=1, key=Secret("neon_org_key_1"))
        ),
        body={"key_name": "ci"},
    ),
    Call(
        lambda neon: neon.organizations.create_api_key("org-1", key_name="ci", project_id="p-1"),
        f"POST {PATH}/api_keys",
        Response(
            {"id": 1, "key": "neon_project_key_1", "name": "ci", "project_id": "p-1"},
            ApiKeyCreated(id=1, key=Secret("neon_project_key_1"), name="ci", project_id="p-1"),
        ),
        body={"key_name": "ci", "project_id": "p-1"},
    ),
    Call(
        lambda neon: neon.organizations.revoke_api_key("org-1", 7),
        f"DELETE {PATH}/api_keys/7",
        Response(
            {"id": 7, "name": "ci", "revoked": True, "last_used_from_addr": ""},
            ApiKeyRevoked(id=7, name="ci", revoked=True, last_used_from_addr=""),
        ),
    ),
    Call(lambda neon: neon.organizations.get_spending_limit("org-1"), f"GET {LIMIT}", NO_LIMIT),
    Call(
        lambda neon: neon.organizations.set_spending_limit("org-1", spending_limit_cents=100),
        f"PUT {LIMIT}",
        Response({"spending_limit_cents": 100}, SpendingLimit(spending_limit_cents=100)),
        body={"spending_limit_cents": 100},
    ),
    Call(lambda neon: neon.organizations.delete_spending_limit("org-1"), f"DELETE {LIMIT}", DONE),
    Call(
        lambda neon: neon.organizations.list_vpc_endpoints("org-1"),
        f"GET {PATH}/vpc/vpc_endpoints",
        records_in("endpoints", VPCEndpointWithRegion, VPC_ENDPOINT_WITH_REGION),
    ),
    Call(
        lambda neon: neon.organizations.list_region_vpc_endpoints("org-1", "aws-us-east-2"),
        f"GET {VPC}",
        records_in("endpoints", VPCEndpoint, VPC_ENDPOINT),
    ),
    Call(
        lambda neon: neon.organizations.get_vpc_endpoint("org-1", "aws-us-east-2", "vpce-1"),
        f"GET {VPC}/vpce-1",
        record(VPCEndpointDetails, VPC_ENDPOINT),
    ),
    Call(
        lambda neon: neon.organizations.assign_vpc_endpoint(
            "org-1", "aws-us-east-2", "vpce-1", label="office"
        ),
        f"POST {VPC}/vpce-1",
        no_content(),
        body={"label": "office"},
    ),
    Call(
        lambda neon: neon.organizations.delete_vpc_endpoint("org-1", "aws-us-east-2", "vpce-1"),
        f"DELETE {VPC}/vpce-1",
        no_content(),
    ),
    Call(
        lambda neon: neon.organizations.transfer_projects(
            "org-1", destination_org_id="org-2", project_ids=["p-1", "p-2"]
        ),
        f"POST {PATH}/projects/transfer",
        DONE,
        body={"destination_org_id": "org-2", "project_ids": ["p-1", "p-2"]},
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


async def test_next_page_of_members_repeats_the_order_and_duplicates_are_skipped() -> None:
    members: list[JsonObject] = [
        {**MEMBER_WITH_USER, "member": {**MEMBER, "id": id}} for id in ("a", "b", "c")
    ]
    async with responding_in_sequence(
        {"members": members[:2], "pagination": {"next": "b+/="}},
        {"members": members[1:], "pagination": {"sort_by": "joined_at"}},
    ) as exchange:
        listing = exchange.neon.organizations.list_members("org-1", limit=2, sort_by="joined_at")
        found = await listing.collect()
    assert [record.member.id for record in found] == ["a", "b", "c"]
    first, second = (request.query for request in exchange.all_sent)
    assert second == {**first, "cursor": "b+/="}


async def test_member_is_promoted_and_removed(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    user_id = await control_plane.create_user("ada", "ada@example.com")
    await control_plane.add_member(control_plane.org_id, user_id)
    listed = await neon.organizations.list_members(control_plane.org_id, limit=1).collect()
    [joined] = [record for record in listed if record.user.email == "ada@example.com"]
    promoted = await neon.organizations.update_member(
        control_plane.org_id, joined.member.id, role=MemberRole.ADMIN
    )
    assert (joined.member.role, promoted.role) == (MemberRole.MEMBER, MemberRole.ADMIN)
    await neon.organizations.remove_member(control_plane.org_id, joined.member.id)
    with pytest.raises(NotFoundError):
        await neon.organizations.get_member(control_plane.org_id, joined.member.id)


async def test_projects_move_to_another_organization(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    other = await control_plane.create_organization("Store")
    project = (await neon.projects.create(org_id=control_plane.org_id)).project
    await neon.organizations.transfer_projects(
        control_plane.org_id, destination_org_id=other, project_ids=[project.id]
    )
    moved = await neon.projects.list(org_id=other).collect()
    assert [(record.id, record.org_id) for record in moved] == [(project.id, other)]
