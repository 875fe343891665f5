import pytest

from neonctl_async import NeonClient
from neonctl_async.types import AuthDetails, AuthMethod, CurrentUser, Organization
from neonctl_local import LocalControlPlane
from tests.models.records import ORGANIZATION, JsonObject
from tests.resources.wire import Call, record, records_in

USER: JsonObject = {"id": "user-1", "email": "ada@example.com"}
DETAILS: JsonObject = {"account_id": "user-1", "auth_method": "api_key_user"}
ORGANIZATIONS = records_in("organizations", Organization, ORGANIZATION)

CALLS = [
    Call(lambda neon: neon.users.me(), "GET /users/me", record(CurrentUser, USER)),
    Call(lambda neon: neon.users.organizations(), "GET /users/me/organizations", ORGANIZATIONS),
    Call(lambda neon: neon.users.auth_details(), "GET /auth", record(AuthDetails, DETAILS)),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


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
