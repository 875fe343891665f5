import pytest

from neonctl_async import InvitationSpec, NeonClient, NotFoundError, Secret
from neonctl_async.local import LocalControlPlane
from neonctl_async.types import (
    ApiKey,
    ApiKeyCreated,
    ApiKeyRevoked,
    Invitation,
    Member,
    MemberRole,
    MemberWithUser,
    Organization,
    SpendingLimit,
    VPCEndpoint,
    VPCEndpointDetails,
    VPCEndpointWithRegion,
)
from tests.models.records import (
    INVITATION,
    MEMBER,
    MEMBER_WITH_USER,
    ORGANIZATION,
    VPC_ENDPOINT,
    JsonObject,
    decode,
)
from tests.resources.wire import Asked, Call, answering_in_turn, check

PATH = "/organizations/org-1"
LIMIT = f"{PATH}/billing/spending_limit"
VPC = f"{PATH}/vpc/region/aws-us-east-2/vpc_endpoints"
VPC_ANYWHERE: JsonObject = {**VPC_ENDPOINT, "region_id": "aws-us-east-2"}
INVITED: JsonObject = {"email": "ada@example.com", "role": "member"}

MEMBERS = [
    Call(
        lambda neon: neon.organizations.get("org-1"),
        asks=Asked("GET", PATH, {}, None),
        shown=ORGANIZATION,
        gives=decode(Organization, ORGANIZATION),
    ),
    Call(
        lambda neon: neon.organizations.list_members("org-1").collect(),
        asks=Asked("GET", f"{PATH}/members", {}, None),
        shown={"members": [MEMBER_WITH_USER]},
        gives=[decode(MemberWithUser, MEMBER_WITH_USER)],
    ),
    Call(
        lambda neon: neon.organizations.list_members(
            "org-1", limit=500, sort_by="email", sort_order="asc"
        ).collect(),
        asks=Asked(
            "GET",
            f"{PATH}/members",
            {"limit": "500", "sort_by": "email", "sort_order": "asc"},
            None,
        ),
        shown={"members": []},
        gives=[],
    ),
    Call(
        lambda neon: neon.organizations.get_member("org-1", "m-1"),
        asks=Asked("GET", f"{PATH}/members/m-1", {}, None),
        shown=MEMBER,
        gives=decode(Member, MEMBER),
    ),
    Call(
        lambda neon: neon.organizations.update_member("org-1", "m-1", role=MemberRole.ADMIN),
        asks=Asked("PATCH", f"{PATH}/members/m-1", {}, {"role": "admin"}),
        shown=MEMBER,
        gives=decode(Member, MEMBER),
    ),
    Call(
        lambda neon: neon.organizations.remove_member("org-1", "m-1"),
        asks=Asked("DELETE", f"{PATH}/members/m-1", {}, None),
        shown={},
        gives=None,
    ),
    Call(
        lambda neon: neon.organizations.list_invitations("org-1"),
        asks=Asked("GET", f"{PATH}/invitations", {}, None),
        shown={"invitations": [INVITATION]},
        gives=[decode(Invitation, INVITATION)],
    ),
    Call(
        lambda neon: neon.organizations.create_invitations(
            "org-1", invitations=(InvitationSpec(email="ada@example.com", role="member"),)
        ),
        asks=Asked("POST", f"{PATH}/invitations", {}, {"invitations": [INVITED]}),
        shown={"invitations": [INVITATION]},
        gives=[decode(Invitation, INVITATION)],
    ),
]

KEYS = [
    Call(
        lambda neon: neon.organizations.list_api_keys("org-1"),
        asks=Asked("GET", f"{PATH}/api_keys", {}, None),
        shown=[{"id": 1, "name": "ci", "project_id": "p-1"}],
        gives=[ApiKey(id=1, name="ci", project_id="p-1")],
    ),
    Call(
        lambda neon: neon.organizations.create_api_key("org-1", key_name="ci"),
        asks=Asked("POST", f"{PATH}/api_keys", {}, {"key_name": "ci"}),
        shown={"id": 1, "key": "neon_org_key_1"},
        gives=ApiKeyCreated(id=1, key=Secret("neon_org_key_1")),
    ),
    Call(
        lambda neon: neon.organizations.create_api_key("org-1", key_name="ci", project_id="p-1"),
        asks=Asked("POST", f"{PATH}/api_keys", {}, {"key_name": "ci", "project_id": "p-1"}),
        shown={"id": 1, "key": "neon_project_key_1", "name": "ci", "project_id": "p-1"},
        gives=ApiKeyCreated(id=1, key=Secret("neon_project_key_1"), name="ci", project_id="p-1"),
    ),
    Call(
        lambda neon: neon.organizations.revoke_api_key("org-1", 7),
        asks=Asked("DELETE", f"{PATH}/api_keys/7", {}, None),
        shown={"id": 7, "name": "ci", "revoked": True, "last_used_from_addr": ""},
        gives=ApiKeyRevoked(id=7, name="ci", revoked=True, last_used_from_addr=""),
    ),
]

SPENDING = [
    Call(
        lambda neon: neon.organizations.get_spending_limit("org-1"),
        asks=Asked("GET", LIMIT, {}, None),
        shown={"spending_limit_cents": None},
        gives=SpendingLimit(spending_limit_cents=None),
    ),
    Call(
        lambda neon: neon.organizations.set_spending_limit("org-1", spending_limit_cents=100),
        asks=Asked("PUT", LIMIT, {}, {"spending_limit_cents": 100}),
        shown={"spending_limit_cents": 100},
        gives=SpendingLimit(spending_limit_cents=100),
    ),
    Call(
        lambda neon: neon.organizations.delete_spending_limit("org-1"),
        asks=Asked("DELETE", LIMIT, {}, None),
        shown={},
        gives=None,
    ),
]

NETWORK = [
    Call(
        lambda neon: neon.organizations.list_vpc_endpoints("org-1"),
        asks=Asked("GET", f"{PATH}/vpc/vpc_endpoints", {}, None),
        shown={"endpoints": [VPC_ANYWHERE]},
        gives=[decode(VPCEndpointWithRegion, VPC_ANYWHERE)],
    ),
    Call(
        lambda neon: neon.organizations.list_region_vpc_endpoints("org-1", "aws-us-east-2"),
        asks=Asked("GET", VPC, {}, None),
        shown={"endpoints": [VPC_ENDPOINT]},
        gives=[decode(VPCEndpoint, VPC_ENDPOINT)],
    ),
    Call(
        lambda neon: neon.organizations.get_vpc_endpoint("org-1", "aws-us-east-2", "vpce-1"),
        asks=Asked("GET", f"{VPC}/vpce-1", {}, None),
        shown=VPC_ENDPOINT,
        gives=decode(VPCEndpointDetails, VPC_ENDPOINT),
    ),
    Call(
        lambda neon: neon.organizations.assign_vpc_endpoint(
            "org-1", "aws-us-east-2", "vpce-1", label="office"
        ),
        asks=Asked("POST", f"{VPC}/vpce-1", {}, {"label": "office"}),
        shown=None,
        gives=None,
    ),
    Call(
        lambda neon: neon.organizations.delete_vpc_endpoint("org-1", "aws-us-east-2", "vpce-1"),
        asks=Asked("DELETE", f"{VPC}/vpce-1", {}, None),
        shown=None,
        gives=None,
    ),
]

TRANSFER = Call(
    lambda neon: neon.organizations.transfer_projects(
        "org-1", destination_org_id="org-2", project_ids=["p-1", "p-2"]
    ),
    asks=Asked(
        "POST",
        f"{PATH}/projects/transfer",
        {},
        {"destination_org_id": "org-2", "project_ids": ["p-1", "p-2"]},
    ),
    shown={},
    gives=None,
)


@pytest.mark.parametrize("call", [*MEMBERS, *KEYS, *SPENDING, *NETWORK, TRANSFER], ids=str)
async def test_what_it_asks_and_gives(call: Call) -> None:
    await check(call)


async def test_members_go_on_by_next_in_the_same_order_and_none_comes_twice() -> None:
    members: list[JsonObject] = [
        {**MEMBER_WITH_USER, "member": {**MEMBER, "id": id}} for id in ("a", "b", "c")
    ]
    async with answering_in_turn(
        {"members": members[:2], "pagination": {"next": "b+/="}},
        {"members": members[1:], "pagination": {"sort_by": "joined_at"}},
    ) as exchange:
        listing = exchange.neon.organizations.list_members("org-1", limit=2, sort_by="joined_at")
        found = await listing.collect()
    assert [one.member.id for one in found] == ["a", "b", "c"]
    begin, further = (asked.query for asked in exchange.all_asked)
    assert further == {**begin, "cursor": "b+/="}


async def test_a_member_is_promoted_and_removed(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    user_id = await control_plane.create_user("ada", "ada@example.com")
    await control_plane.add_member(control_plane.org_id, user_id)
    listed = await neon.organizations.list_members(control_plane.org_id, limit=1).collect()
    [joined] = [one for one in listed if one.user.email == "ada@example.com"]
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
    assert [(one.id, one.org_id) for one in moved] == [(project.id, other)]
