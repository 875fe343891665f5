from neonctl_async.types import MemberWithUser, SpendingLimit, VPCEndpointDetails
from tests.models.records import MEMBER_WITH_USER, VPC_ENDPOINT, decode


def test_membership_and_user_have_different_ids() -> None:
    member = decode(MemberWithUser, MEMBER_WITH_USER).member
    assert (member.id, member.user_id) == ("m-1", "user-1")


def test_spending_limit_of_null_means_no_limit() -> None:
    assert decode(SpendingLimit, {"spending_limit_cents": None}).spending_limit_cents is None


def test_vpc_endpoint_details_extend_the_listed_record() -> None:
    more = {"state": "accepted", "example_restricted_projects": ["p-1"]}
    details = decode(VPCEndpointDetails, {**VPC_ENDPOINT, **more})
    assert (details.vpc_endpoint_id, details.state) == ("vpce-1", "accepted")
    assert details.example_restricted_projects == ["p-1"]
