"""The roles of members."""

from control_plane.tests.client import Client
from control_plane.tests.keys import member_key


async def test_published_role_that_is_not_available_is_refused(api: Client) -> None:
    user_id, _ = await member_key(api, name="bea")
    path = f"{api.organization_path}/members"
    [member_id] = [
        entry["member"]["id"]
        for entry in (await api.get(path))["members"]
        if entry["member"]["user_id"] == user_id
    ]
    path = f"{path}/{member_id}"
    await api.expect_error(422, "use 'admin' or 'member'", "PATCH", path, {"role": "viewer"})
    await api.expect_error(400, "role", "PATCH", path, {"role": "owner"})
