"""API keys for the tests."""

from control_plane.tests.client import Client
from neonctl_local.storage.tables import MemberRole


async def organization_key(api: Client, name: str = "org key") -> tuple[int, str]:
    """Create a key of the first organization. Return its id and its token."""
    return await _create_key(api, {"key_name": name})


async def project_key(api: Client, project_id: str) -> tuple[int, str]:
    """Create a key for a project of the first organization. Return its id and its token."""
    return await _create_key(api, {"key_name": "scoped", "project_id": project_id})


async def member_key(
    api: Client, role: MemberRole = "member", name: str = "second"
) -> tuple[str, str]:
    """Create a member of the first organization. Return the user id and a personal key."""
    control_plane = api.control_plane
    user_id = await control_plane.create_user(name, f"{name}@example.com")
    await control_plane.add_member(control_plane.org_id, user_id, role)
    return user_id, await control_plane.create_api_key("member key", user_id=user_id)


async def _create_key(api: Client, body: dict[str, str]) -> tuple[int, str]:
    path = f"{api.organization_path}/api_keys"
    created = await api.request("POST", path, body)
    return created["id"], created["key"]
