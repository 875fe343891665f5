"""Databases of a branch."""

from urllib.parse import quote

import pytest

from control_plane.tests.client import Client, actions_of


@pytest.mark.fact("databases-5")
async def test_database_is_created_changed_and_deleted(api: Client, branch_path: str) -> None:
    await api.request("POST", f"{branch_path}/roles", {"role": {"name": "alex"}})
    spec = {"name": "shop", "owner_name": "neondb_owner"}
    created = await api.request("POST", f"{branch_path}/databases", {"database": spec})
    assert created["database"].items() >= spec.items()
    assert actions_of(created) == ["apply_config"]
    changes = {"name": "store", "owner_name": "alex"}
    changed = await api.request("PATCH", f"{branch_path}/databases/shop", {"database": changes})
    assert changed["database"].items() >= changes.items()
    assert changed["database"]["id"] == created["database"]["id"]
    assert (await api.send("GET", f"{branch_path}/databases/shop")).status == 404
    assert (await api.get(f"{branch_path}/databases/store"))["database"] == changed["database"]
    unchanged = await api.request("PATCH", f"{branch_path}/databases/store", {"database": {}})
    assert unchanged["operations"] == []
    assert actions_of(changed) == ["apply_config"]
    deleted = await api.request("DELETE", f"{branch_path}/databases/store")
    assert actions_of(deleted) == ["apply_config"]
    assert (await api.send("DELETE", f"{branch_path}/databases/store")).status == 204
    assert (await api.send("DELETE", f"{branch_path}/databases/never")).status == 404
    names = [found["name"] for found in (await api.get(f"{branch_path}/databases"))["databases"]]
    assert names == ["neondb"]


@pytest.mark.parametrize("name", ["{name}", "a/b", "a b", "ü", "50%", "a?b", "a#b", "+"])
async def test_database_is_found_by_any_name(api: Client, branch_path: str, name: str) -> None:
    await api.add_database(branch_path, name)
    path = f"{branch_path}/databases/{quote(name, safe='')}"
    assert (await api.get(path))["database"]["name"] == name
    await api.request("DELETE", path)


async def test_owner_of_a_database_must_be_a_role_of_the_branch(
    api: Client, branch_path: str
) -> None:
    body = {"database": {"name": "shop", "owner_name": "nobody"}}
    assert (await api.send("POST", f"{branch_path}/databases", body)).status == 404
    assert (await api.send("PATCH", f"{branch_path}/databases/neondb", body)).status == 404
    body = {"database": {"name": "shop"}}
    await api.expect_error(400, "database.owner_name", "POST", f"{branch_path}/databases", body)
