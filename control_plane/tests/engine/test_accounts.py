"""Users, organizations and the first key: section 5 of the specification."""

import re

import pytest

from control_plane.tests.client import Client
from neonctl_local import ApiError


async def test_first_key_is_created_at_the_first_start(api: Client) -> None:
    assert re.fullmatch(r"neon_api_key_[0-9a-f]{32}", api.control_plane.api_key)
    assert (await api.get("/users/me"))["id"] == api.control_plane.user_id


async def test_key_can_be_created_without_an_api_request(api: Client) -> None:
    token = await api.control_plane.create_api_key("from the console")
    assert "from the console" in [key["name"] for key in await api.get("/api_keys", key=token)]


async def test_duplicate_and_unknown_users_are_rejected(api: Client) -> None:
    control_plane = api.control_plane
    with pytest.raises(ApiError, match="already exists"):
        await control_plane.create_user("Twin", "first.user@neon.invalid")
    with pytest.raises(ApiError, match="already a member"):
        await control_plane.add_member(control_plane.org_id, control_plane.user_id)
    with pytest.raises(ApiError, match="not found"):
        await control_plane.create_api_key("k", user_id="nobody")
    with pytest.raises(ApiError, match="not found"):
        await control_plane.remove_member(control_plane.org_id, "nobody")
    with pytest.raises(ApiError, match="not found"):
        await control_plane.add_member(control_plane.org_id, "nobody")
    with pytest.raises(ApiError, match="not found"):
        await control_plane.create_organization("Other", admin_id="nobody")
