"""A branch with Neon Auth."""

import pytest

from control_plane.tests.client import Client

BETTER_AUTH = {"auth_provider": "better_auth"}


@pytest.fixture
async def auth_path(api: Client, branch_path: str) -> str:
    """Enable Neon Auth on the first branch of the project. Return the path of Neon Auth."""
    await api.request("POST", f"{branch_path}/auth", BETTER_AUTH)
    return f"{branch_path}/auth"
