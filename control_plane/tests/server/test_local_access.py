"""What each kind of key may do with the requests below ``/local/v1``."""

import pytest

from control_plane.tests.api.people.test_invitations import invite
from control_plane.tests.client import Client, Http
from control_plane.tests.keys import member_key, organization_key, project_key
from neonctl_local.server.fault_requests import ANSWERS
from neonctl_local.server.routes import FAULTS_PATH, LINKS_PATH, LOCAL_PATH, LOCAL_ROUTES

CALLERS = ("administrator", "member", "stranger", "organization", "project", "revoked", "nobody")
"""A stranger has a personal key, and administers another organization."""

FAULT = {"faults": [{"route": "GET /projects", "status": 503}]}

ALLOWED: dict[str, tuple[int, ...]] = {
    "GET /users": (200, 200, 200, 403, 403, 401, 401),
    "POST /users": (201, 201, 201, 403, 403, 401, 401),
    "POST /organizations": (201, 201, 201, 403, 403, 401, 401),
    "GET /organizations/{org_id}/invitations": (200, 200, 404, 200, 403, 401, 401),
    # Without the secret, even an administrator does not accept an invitation.
    "POST /invitations/{invitation_id}/accept": (403, 403, 403, 403, 403, 401, 401),
    "POST /invitations/{invitation_id}/secret": (201, 403, 404, 201, 403, 401, 401),
    "DELETE /invitations/{invitation_id}": (200, 403, 404, 200, 403, 401, 401),
    "POST /console_links": (201, 201, 201, 403, 403, 401, 401),
    "GET /faults": (200, 403, 403, 403, 403, 401, 401),
    "POST /faults": (200, 403, 403, 403, 403, 401, 401),
    "DELETE /faults": (200, 403, 403, 403, 403, 401, 401),
    # The only administrator cannot leave.
    "POST /organizations/{org_id}/leave": (422, 200, 404, 403, 403, 401, 401),
}
"""The statuses of each request for the callers, in their order. The last one ends a membership."""

BODIES: dict[str, object] = {
    "POST /users": {"name": "New", "email": "new@example.com"},
    "POST /organizations": {"name": "New"},
    "POST /invitations/{invitation_id}/accept": {
        "name": "Guest",
        "secret": "neon_invitation_key_0",
    },
    "POST /faults": FAULT,
}


def test_every_request_is_in_the_table() -> None:
    served = {str(route).replace(LOCAL_PATH, "") for route in LOCAL_ROUTES}
    served.add(f"POST {LINKS_PATH.removeprefix(LOCAL_PATH)}")
    served |= {f"{method} {FAULTS_PATH.removeprefix(LOCAL_PATH)}" for method in ANSWERS}
    assert served == set(ALLOWED)


async def keys_of(api: Client) -> dict[str, str]:
    """Return a key of each caller. The stranger administers an organization of their own."""
    project_id = (await api.project())["project"]["id"]
    plane = api.control_plane
    stranger_id = await plane.create_user("Stranger", "stranger@example.com")
    await plane.create_organization("Strangers", admin_id=stranger_id)
    revoked = await api.request("POST", "/api_keys", {"key_name": "revoked"})
    await api.request("DELETE", f"/api_keys/{revoked['id']}")
    return {
        "administrator": api.key,
        "member": (await member_key(api, name="bea"))[1],
        "stranger": await plane.create_api_key("stranger", user_id=stranger_id),
        "organization": (await organization_key(api))[1],
        "project": (await project_key(api, project_id))[1],
        "revoked": revoked["key"],
        "nobody": "",
    }


@pytest.mark.parametrize("caller", CALLERS)
async def test_key_may_do_only_what_its_owner_may(api: Client, caller: str) -> None:
    key = (await keys_of(api))[caller]
    members = f"{api.organization_path}/members"
    before = await api.get(members)
    statuses: dict[str, int] = {}
    async with Http(api.base_url.removesuffix("/api/v2") + LOCAL_PATH, api.key) as console:
        for number, name in enumerate(ALLOWED):
            assert await api.get(members) == before, "only the last request changes the members"
            guest = {"email": f"guest{number}@example.com", "role": "admin"}
            [invitation_id] = await invite(api, guest)
            method, path = name.split(" ")
            path = path.format(org_id=api.control_plane.org_id, invitation_id=invitation_id)
            statuses[name] = (await console.send(method, path, BODIES.get(name), key=key)).status
    allowed = {name: row[CALLERS.index(caller)] for name, row in ALLOWED.items()}
    assert statuses == allowed
