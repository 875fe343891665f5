import pytest

from neonctl_async import NeonClient
from neonctl_async.local import LocalControlPlane
from neonctl_async.types import AuthDetails, AuthMethod, CurrentUser, Organization
from tests.models.records import ORGANIZATION, JsonObject, decode
from tests.resources.wire import Asked, Call, check

USER: JsonObject = {"id": "user-1", "email": "ada@example.com"}
DETAILS: JsonObject = {"account_id": "user-1", "auth_method": "api_key_user"}

CALLS = [
    Call(
        lambda neon: neon.users.me(),
        asks=Asked("GET", "/users/me", {}, None),
        shown=USER,
        gives=decode(CurrentUser, USER),
    ),
    Call(
        lambda neon: neon.users.organizations(),
        asks=Asked("GET", "/users/me/organizations", {}, None),
        shown={"organizations": [ORGANIZATION]},
        gives=[decode(Organization, ORGANIZATION)],
    ),
    Call(
        lambda neon: neon.users.auth_details(),
        asks=Asked("GET", "/auth", {}, None),
        shown=DETAILS,
        gives=decode(AuthDetails, DETAILS),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_what_it_asks_and_gives(call: Call) -> None:
    await check(call)


async def test_whose_the_key_is(control_plane: LocalControlPlane, neon: NeonClient) -> None:
    assert (await neon.users.me()).id == control_plane.user_id
    assert [one.id for one in await neon.users.organizations()] == [control_plane.org_id]
    details = await neon.users.auth_details()
    assert (details.account_id, details.auth_method) == (
        control_plane.user_id,
        AuthMethod.API_KEY_USER,
    )
