"""Roles of a branch, and their passwords."""

import pytest

from control_plane.tests.client import Client, actions_of


@pytest.mark.fact("roles-11", "roles-12")
async def test_password_is_returned_when_a_role_is_created_and_when_it_is_revealed(
    api: Client, branch_path: str
) -> None:
    created = await api.request("POST", f"{branch_path}/roles", {"role": {"name": "alex"}})
    assert actions_of(created) == ["apply_config"]
    password = created["role"]["password"]
    assert password.startswith("npg_")
    read = (await api.get(f"{branch_path}/roles/alex"))["role"]
    assert read == {name: value for name, value in created["role"].items() if name != "password"}
    assert read in (await api.get(f"{branch_path}/roles"))["roles"]
    for method in ("GET", "POST"):
        revealed = await api.request(method, f"{branch_path}/roles/alex/reveal_password")
        assert revealed == {"password": password}


@pytest.mark.fact("roles-13")
async def test_password_can_be_reset(api: Client, branch_path: str) -> None:
    before = await api.get(f"{branch_path}/roles/neondb_owner/reveal_password")
    reset = await api.request("POST", f"{branch_path}/roles/neondb_owner/reset_password")
    after = await api.get(f"{branch_path}/roles/neondb_owner/reveal_password")
    assert before["password"] != after["password"] == reset["role"]["password"]
    assert actions_of(reset) == ["apply_config"]


@pytest.mark.fact("roles-14")
async def test_role_without_login_has_no_password(api: Client, branch_path: str) -> None:
    body = {"role": {"name": "group", "no_login": True}}
    created = await api.request("POST", f"{branch_path}/roles", body)
    assert "password" not in created["role"]
    assert (await api.send("GET", f"{branch_path}/roles/group/reveal_password")).status == 404
    assert (await api.send("POST", f"{branch_path}/roles/group/reset_password")).status == 422


async def test_password_is_not_revealed_if_the_project_stores_no_passwords(api: Client) -> None:
    created = await api.project(store_passwords=False)
    path = f"/projects/{created['project']['id']}/branches/{created['branch']['id']}/roles"
    assert (await api.send("GET", f"{path}/neondb_owner/reveal_password")).status == 412


@pytest.mark.fact("roles-10")
async def test_role_that_owns_a_database_cannot_be_deleted(api: Client, branch_path: str) -> None:
    await api.request("POST", f"{branch_path}/roles", {"role": {"name": "alex"}})
    deleted = await api.request("DELETE", f"{branch_path}/roles/alex")
    assert (deleted["role"]["name"], len(deleted["operations"])) == ("alex", 1)
    assert (await api.send("DELETE", f"{branch_path}/roles/alex")).status == 204
    assert (await api.send("GET", f"{branch_path}/roles/alex")).status == 404
    assert (await api.send("DELETE", f"{branch_path}/roles/never")).status == 404
    await api.expect_error(422, "neondb", "DELETE", f"{branch_path}/roles/neondb_owner")


async def test_role_name_with_special_characters_is_percent_encoded_in_paths(
    api: Client, branch_path: str
) -> None:
    name = "a b/ä%"
    await api.request("POST", f"{branch_path}/roles", {"role": {"name": name}})
    role = await api.get(f"{branch_path}/roles/a%20b%2F%C3%A4%25")
    assert role["role"]["name"] == name
