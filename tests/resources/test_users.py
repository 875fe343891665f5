import pytest

from neonctl_async import NeonClient
from neonctl_async.local import LocalControlPlane
from neonctl_async.types import AuthDetails, AuthMethod, CurrentUser, Organization
from tests.models.records import ORGANIZATION, JsonObject, decode
from tests.resources.wire import Call, SentRequest, check_call

USER: JsonObject = {"id": "user-1", "email": "ada@example.com"}
DETAILS: JsonObject = {"account_id": "user-1", "auth_method": "api_key_user"}

CALLS = [
    Call(
        lambda neon: neon.users.me(),
        sends=SentRequest("GET", "/users/me", {}, None),
        response=USER,
        returns=decode(CurrentUser, USER),
    ),
    Call(
        lambda neon: neon.users.organizations(),
        sends=SentRequest("GET", "/users/me/organizations", {}, None),
        response={"organizations": [ORGANIZATION]},
        returns=[decode(Organization, ORGANIZATION)],
    ),
    Call(
        lambda neon: neon.users.auth_details(),
        sends=SentRequest("GET", "/auth", {}, None),
        response=DETAILS,
        returns=decode(AuthDetails, DETAILS),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await check_call(call)


async def test_personal_key_belongs_to_a_user(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    assert (await neon.users.me()).id == control_plane.user_id
    assert [record.id for record in await neon.users.organizations()] == [control_plane.org_id]
    details = await neon.users.auth_details()
    assert (details.account_id, details.auth_method) == (
        control_plane.user_id,
        AuthMethod.API_KEY_USER,
    )
