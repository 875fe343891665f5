"""The monthly spending limit of an organization."""

import pytest

from control_plane.tests.client import Client
from control_plane.tests.keys import member_key


def path_of(api: Client) -> str:
    return f"{api.organization_path}/billing/spending_limit"


async def test_spending_limit_is_stored_replaced_and_removed(api: Client) -> None:
    path = path_of(api)
    assert await api.get(path) == {"spending_limit_cents": None}
    for cents in (1, 2**63 - 1):
        expected = {"spending_limit_cents": cents}
        assert await api.request("PUT", path, expected) == expected
        assert await api.get(path) == expected
    for _ in range(2):
        assert await api.request("DELETE", path) == {}
        assert await api.get(path) == {"spending_limit_cents": None}


@pytest.mark.parametrize("cents", [0, -1, None, 1.5, "100", 2**63])
async def test_invalid_spending_limit_is_refused(api: Client, cents: object) -> None:
    body = {"spending_limit_cents": cents}
    await api.expect_error(400, "spending_limit_cents", "PUT", path_of(api), body)
    assert await api.get(path_of(api)) == {"spending_limit_cents": None}


async def test_members_read_the_spending_limit_and_administrators_change_it(api: Client) -> None:
    path = path_of(api)
    _, user_key = await member_key(api, name="bea")
    assert await api.get(path, key=user_key) == {"spending_limit_cents": None}
    body = {"spending_limit_cents": 100}
    assert (await api.send("PUT", path, body, key=user_key)).status == 403
    assert (await api.send("DELETE", path, key=user_key)).status == 403
