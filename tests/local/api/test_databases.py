"""Roles and databases of a branch, and the URIs to connect with."""

import pytest

from neonctl_async.local import ManualClock
from tests.local.client import Client


@pytest.fixture
async def path(api: Client, clock: ManualClock, project_id: str) -> str:
    """The path of the first branch of a project, its compute running."""
    clock.advance(9)
    (branch,) = (await api.get(f"/projects/{project_id}/branches"))["branches"]
    return f"/projects/{project_id}/branches/{branch['id']}"


async def test_a_role_is_created_with_a_password_shown_there_and_when_revealed(
    api: Client, path: str
) -> None:
    created = await api.done("POST", f"{path}/roles", {"role": {"name": "alex"}})
    assert [op["action"] for op in created["operations"]] == ["apply_config"]
    password = created["role"]["password"]
    read = (await api.get(f"{path}/roles/alex"))["role"]
    assert read == {name: value for name, value in created["role"].items() if name != "password"}
    assert read in (await api.get(f"{path}/roles"))["roles"]
    for method in ("GET", "POST"):
        revealed = await api.done(method, f"{path}/roles/alex/reveal_password")
        assert revealed == {"password": password}


async def test_a_password_is_reset(api: Client, path: str) -> None:
    before = await api.get(f"{path}/roles/neondb_owner/reveal_password")
    reset = await api.done("POST", f"{path}/roles/neondb_owner/reset_password")
    after = await api.get(f"{path}/roles/neondb_owner/reveal_password")
    assert before["password"] != after["password"] == reset["role"]["password"]
    assert [op["action"] for op in reset["operations"]] == ["apply_config"]


async def test_a_role_that_cannot_log_in_has_no_password(api: Client, path: str) -> None:
    body = {"role": {"name": "group", "no_login": True}}
    created = await api.done("POST", f"{path}/roles", body)
    assert "password" not in created["role"]
    assert (await api.send("GET", f"{path}/roles/group/reveal_password")).status == 404
    assert (await api.send("POST", f"{path}/roles/group/reset_password")).status == 422


async def test_a_project_may_store_no_passwords(api: Client) -> None:
    made = await api.project(store_passwords=False)
    path = f"/projects/{made['project']['id']}/branches/{made['branch']['id']}/roles/neondb_owner"
    assert (await api.send("GET", f"{path}/reveal_password")).status == 412


async def test_a_role_is_deleted_unless_it_owns_a_database(api: Client, path: str) -> None:
    await api.done("POST", f"{path}/roles", {"role": {"name": "alex"}})
    deleted = await api.done("DELETE", f"{path}/roles/alex")
    assert (deleted["role"]["name"], len(deleted["operations"])) == ("alex", 1)
    assert (await api.send("DELETE", f"{path}/roles/alex")).status == 204
    assert (await api.send("GET", f"{path}/roles/alex")).status == 404
    assert (await api.send("DELETE", f"{path}/roles/never")).status == 404
    owner = await api.send("DELETE", f"{path}/roles/neondb_owner")
    assert (owner.status, "neondb" in owner.message) == (422, True)


async def test_a_database_is_created_changed_and_deleted(api: Client, path: str) -> None:
    await api.done("POST", f"{path}/roles", {"role": {"name": "alex"}})
    spec = {"name": "shop", "owner_name": "neondb_owner"}
    created = await api.done("POST", f"{path}/databases", {"database": spec})
    assert created["database"].items() >= spec.items()
    assert [op["action"] for op in created["operations"]] == ["apply_config"]
    changes = {"name": "store", "owner_name": "alex"}
    changed = await api.done("PATCH", f"{path}/databases/shop", {"database": changes})
    assert changed["database"].items() >= changes.items()
    assert changed["database"]["id"] == created["database"]["id"]
    assert (await api.send("GET", f"{path}/databases/shop")).status == 404
    assert (await api.get(f"{path}/databases/store"))["database"] == changed["database"]
    unchanged = await api.done("PATCH", f"{path}/databases/store", {"database": {}})
    assert unchanged["operations"] == []
    await api.done("DELETE", f"{path}/databases/store")
    assert (await api.send("DELETE", f"{path}/databases/store")).status == 204
    assert (await api.send("DELETE", f"{path}/databases/never")).status == 404
    names = [found["name"] for found in (await api.get(f"{path}/databases"))["databases"]]
    assert names == ["neondb"]


async def test_names_are_taken_once_in_a_branch(api: Client, path: str) -> None:
    role = {"role": {"name": "neondb_owner"}}
    database = {"database": {"name": "neondb", "owner_name": "neondb_owner"}}
    other = {"database": {"name": "other", "owner_name": "neondb_owner"}}
    assert (await api.send("POST", f"{path}/roles", role)).status == 409
    assert (await api.send("POST", f"{path}/databases", database)).status == 409
    await api.done("POST", f"{path}/databases", other)
    renamed = {"database": {"name": "neondb"}}
    assert (await api.send("PATCH", f"{path}/databases/other", renamed)).status == 409


async def test_a_database_has_an_owner_of_its_branch(api: Client, path: str) -> None:
    body = {"database": {"name": "shop", "owner_name": "nobody"}}
    assert (await api.send("POST", f"{path}/databases", body)).status == 404
    assert (await api.send("PATCH", f"{path}/databases/neondb", body)).status == 404
    reply = await api.send("POST", f"{path}/databases", {"database": {"name": "shop"}})
    assert (reply.status, "database.owner_name" in reply.message) == (400, True)


async def test_names_with_special_characters_are_told_apart_in_paths(
    api: Client, path: str
) -> None:
    name = "a b/ä%"
    await api.done("POST", f"{path}/roles", {"role": {"name": name}})
    role = await api.get(f"{path}/roles/a%20b%2F%C3%A4%25")
    assert role["role"]["name"] == name


async def test_a_configuration_starts_an_idle_compute_first(
    api: Client, clock: ManualClock, path: str
) -> None:
    clock.advance(3600)
    created = await api.done("POST", f"{path}/roles", {"role": {"name": "alex"}})
    assert [op["action"] for op in created["operations"]] == ["start_compute", "apply_config"]


async def test_a_branch_without_a_compute_is_configured_too(api: Client, project_id: str) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    path = f"/projects/{project_id}/branches/{branch_id}/roles"
    created = await api.done("POST", path, {"role": {"name": "alex"}})
    (operation,) = created["operations"]
    assert (operation["action"], "endpoint_id" in operation) == ("apply_config", False)


async def test_a_connection_uri_is_that_of_the_default_branch_unless_told(
    api: Client, project_id: str, path: str
) -> None:
    uri = f"/projects/{project_id}/connection_uri?database_name=neondb&role_name=neondb_owner"
    password = (await api.get(f"{path}/roles/neondb_owner/reveal_password"))["password"]
    (endpoint,) = (await api.get(f"{path}/endpoints"))["endpoints"]
    host = endpoint["host"]
    direct = f"postgresql://neondb_owner:{password}@{host}/neondb?sslmode=require"
    assert await api.get(uri) == {"uri": direct}
    pooled = await api.get(f"{uri}&pooled=true")
    assert pooled == {"uri": direct.replace(host, host.replace(".", "-pooler.", 1))}
    other = await api.branch(project_id, compute=True)
    named = await api.get(f"{uri}&branch_id={other['branch']['id']}")
    assert other["endpoints"][0]["host"] in named["uri"]
    chosen = await api.get(f"{uri}&endpoint_id={endpoint['id']}")
    assert chosen == {"uri": direct}


@pytest.mark.parametrize(
    ("query", "status", "word"),
    [
        ("role_name=neondb_owner", 400, "database_name"),
        ("database_name=neondb", 400, "role_name"),
        ("database_name=none&role_name=neondb_owner", 404, "none"),
        ("database_name=neondb&role_name=none", 404, "none"),
        ("database_name=neondb&role_name=neondb_owner&branch_id=br-none-1", 404, "br-none-1"),
        ("database_name=neondb&role_name=neondb_owner&endpoint_id=ep-none-1", 404, "ep-none-1"),
        ("database_name=neondb&role_name=neondb_owner&pooled=2", 400, "pooled"),
    ],
)
async def test_a_connection_uri_that_cannot_be_is_refused(
    api: Client, project_id: str, query: str, status: int, word: str
) -> None:
    reply = await api.send("GET", f"/projects/{project_id}/connection_uri?{query}")
    assert (reply.status, word in reply.message) == (status, True)


async def test_a_branch_without_a_compute_has_no_connection_uri(
    api: Client, project_id: str
) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    query = f"database_name=neondb&role_name=neondb_owner&branch_id={branch_id}"
    reply = await api.send("GET", f"/projects/{project_id}/connection_uri?{query}")
    assert (reply.status, "no endpoint" in reply.message) == (400, True)
