"""Neon Auth of a branch: enabling, reading and disabling it, and its copies in other branches."""

from pathlib import Path
from typing import Any

import pytest

from control_plane.tests.api.services.conftest import BETTER_AUTH
from control_plane.tests.client import Client, Reply, branch_path_of, serve
from control_plane.tests.keys import project_key
from control_plane.tests.restores import RestoreScenario
from neonctl_local import ManualClock

HOST = "neonauth.us-east-2.aws.neon.invalid"


async def compute_id(api: Client, branch_path: str) -> str:
    (compute,) = (await api.get(f"{branch_path}/endpoints"))["endpoints"]
    return str(compute["id"])


async def add_user(api: Client, branch_path: str, email: str = "ada@example.com") -> Reply:
    return await api.send("POST", f"{branch_path}/auth/users", {"email": email})


async def has_auth(api: Client, branch_path: str) -> bool:
    status = (await api.send("GET", f"{branch_path}/auth")).status
    assert status in {200, 404}
    return status == 200


async def test_enabled_auth_has_the_published_fields(
    api: Client, branch_path: str, project_id: str
) -> None:
    created = await api.send("POST", f"{branch_path}/auth", BETTER_AUTH)
    assert created.status == 201
    base_url = f"https://{await compute_id(api, branch_path)}.{HOST}/neondb/auth"
    provider_project_id = created.json["auth_provider_project_id"]
    assert created.json == {
        "auth_provider": "better_auth",
        "auth_provider_project_id": provider_project_id,
        "pub_client_key": "",
        "secret_server_key": "",
        "jwks_url": f"{base_url}/.well-known/jwks.json",
        "schema_name": "neon_auth",
        "table_name": "users_sync",
        "base_url": base_url,
    }
    assert await api.get(f"{branch_path}/auth") == {
        "auth_provider": "better_auth",
        "auth_provider_project_id": provider_project_id,
        "branch_id": branch_path.rpartition("/")[2],
        "db_name": "neondb",
        "created_at": "2026-01-01T00:00:09Z",
        "owned_by": "neon",
        "jwks_url": f"{base_url}/.well-known/jwks.json",
        "base_url": base_url,
        "name": (await api.get(f"/projects/{project_id}"))["project"]["name"],
    }


async def test_enabling_auth_twice_is_409(api: Client, auth_path: str) -> None:
    await api.expect_error(409, "is already enabled", "POST", auth_path, BETTER_AUTH)


async def test_keys_are_returned_for_stack_only(api: Client, branch_path: str) -> None:
    stack = await api.request("POST", f"{branch_path}/auth", {"auth_provider": "stack"})
    assert stack["pub_client_key"]
    assert stack["secret_server_key"]


async def test_error_for_an_invalid_request_names_the_field(api: Client, branch_path: str) -> None:
    path = f"{branch_path}/auth"
    await api.expect_error(400, "auth_provider", "POST", path, {})
    await api.expect_error(400, "auth_provider", "POST", path, {"auth_provider": "clerk"})
    body = BETTER_AUTH | {"database_name": "shop"}
    await api.expect_error(404, "database 'shop' not found", "POST", path, body)
    await api.request("DELETE", f"{branch_path}/databases/neondb")
    await api.expect_error(400, "database_name", "POST", path, BETTER_AUTH)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("DELETE", "", None),
        ("PATCH", "/config", {"name": "shop"}),
        ("GET", "/domains", None),
        ("GET", "/oauth_providers", None),
        ("POST", "/users", {"email": "ada@example.com"}),
        ("GET", "/plugins", None),
        ("PATCH", "/allow_localhost", {"allow_localhost": False}),
        ("PUT", "/webhooks", {"enabled": False}),
    ],
)
async def test_branch_without_auth_is_404(
    api: Client, project_id: str, branch_path: str, method: str, path: str, body: object
) -> None:
    words = "Neon Auth is not enabled"
    await api.expect_error(404, words, method, f"{branch_path}/auth{path}", body)
    missing = f"/projects/{project_id}/branches/br-none/auth{path}"
    await api.expect_error(404, "branch not found", method, missing, body)


async def test_application_gets_a_name(api: Client, auth_path: str) -> None:
    assert await api.request("PATCH", f"{auth_path}/config", {"name": "shop"}) == {"name": "shop"}
    assert (await api.get(auth_path))["name"] == "shop"
    await api.expect_error(400, "name", "PATCH", f"{auth_path}/config", {"name": ""})


async def test_auth_that_is_enabled_again_has_its_data(
    api: Client, branch_path: str, auth_path: str
) -> None:
    assert (await add_user(api, branch_path)).status == 201
    domain = BETTER_AUTH | {"domain": "https://example.com"}
    assert (await api.send("POST", f"{auth_path}/domains", domain)).status == 201
    disabled = await api.send("DELETE", auth_path)
    assert (disabled.status, disabled.content) == (200, b"")
    await api.expect_error(404, "is not enabled", "DELETE", auth_path)
    await api.request("POST", auth_path, BETTER_AUTH)
    assert (await add_user(api, branch_path)).status == 409
    assert (await api.get(f"{auth_path}/domains"))["domains"] == [domain]


async def test_auth_whose_data_was_deleted_is_empty(
    api: Client, branch_path: str, auth_path: str
) -> None:
    assert (await add_user(api, branch_path)).status == 201
    await api.request("PATCH", f"{auth_path}/config", {"name": "shop"})
    assert (await api.send("DELETE", auth_path, {"delete_data": True})).status == 200
    await api.request("POST", auth_path, BETTER_AUTH)
    assert (await add_user(api, branch_path)).status == 201
    assert (await api.get(auth_path))["name"] != "shop"


async def test_auth_that_moves_to_another_database_is_empty(
    api: Client, branch_path: str, auth_path: str
) -> None:
    await api.add_database(branch_path, "shop")
    assert (await add_user(api, branch_path)).status == 201
    await api.send("DELETE", auth_path)
    await api.request("POST", auth_path, BETTER_AUTH | {"database_name": "shop"})
    assert (await api.get(auth_path))["db_name"] == "shop"
    assert (await add_user(api, branch_path)).status == 201


async def test_auth_follows_its_database(api: Client, branch_path: str, auth_path: str) -> None:
    await api.add_database(branch_path, "other")
    for name, new_name in (("other", "another"), ("another", "other"), ("neondb", "shop")):
        assert (await api.get(auth_path))["db_name"] == "neondb"
        renamed = {"database": {"name": new_name}}
        await api.request("PATCH", f"{branch_path}/databases/{name}", renamed)
    shown = await api.get(auth_path)
    assert (shown["db_name"], "/shop/auth" in shown["base_url"]) == ("shop", True)
    await api.request("DELETE", f"{branch_path}/databases/other")
    assert await has_auth(api, branch_path)
    await api.request("DELETE", f"{branch_path}/databases/shop")
    assert not await has_auth(api, branch_path)


@pytest.mark.fact("auth-1")
async def test_child_branch_has_an_independent_copy(
    api: Client, project_id: str, branch_path: str, auth_path: str
) -> None:
    user = (await add_user(api, branch_path)).json
    child = branch_path_of(await api.branch(project_id, compute=True))
    copy, parent = await api.get(f"{child}/auth"), await api.get(auth_path)
    assert copy["branch_id"] == child.rpartition("/")[2]
    assert copy["base_url"] == f"https://{await compute_id(api, child)}.{HOST}/neondb/auth"
    assert copy["created_at"] == parent["created_at"]
    assert (await api.send("DELETE", f"{child}/auth/users/{user['id']}")).status == 204
    assert (await add_user(api, branch_path)).status == 409
    await api.send("DELETE", auth_path, {"delete_data": True})
    assert await has_auth(api, child)


async def test_schema_only_branch_has_no_auth(api: Client, project_id: str, auth_path: str) -> None:
    assert await api.get(auth_path)
    child = branch_path_of(await api.branch(project_id, init_source="schema-only"))
    assert not await has_auth(api, child)


async def test_host_of_a_branch_without_a_compute_has_the_id_of_the_branch(
    api: Client, project_id: str, auth_path: str
) -> None:
    assert await api.get(auth_path)
    child = branch_path_of(await api.branch(project_id))
    base_url = f"https://{child.rpartition('/')[2]}.{HOST}/neondb/auth"
    assert (await api.get(f"{child}/auth"))["base_url"] == base_url


@pytest.mark.fact("reset-6")
async def test_restored_branch_has_the_auth_of_its_source(
    api: Client, clock: ManualClock, project_id: str, branch_path: str, auth_path: str
) -> None:
    child = branch_path_of(await api.branch(project_id, name="child"))
    clock.advance(9)
    await api.send("DELETE", auth_path, {"delete_data": True})
    assert (await add_user(api, child, "old@example.com")).status == 201
    body = {"source_branch_id": branch_path.rpartition("/")[2], "preserve_under_name": "kept"}
    restored = await api.request("POST", f"{child}/restore", body)
    assert not await has_auth(api, child)
    kept = f"/projects/{project_id}/branches/{(await find(api, project_id, 'kept'))['id']}"
    assert restored["branch"]["parent_id"] == branch_path.rpartition("/")[2]
    assert (await add_user(api, kept, "old@example.com")).status == 409


async def find(api: Client, project_id: str, name: str) -> Any:  # Any: as Client.get
    (branch,) = (await api.get(f"/projects/{project_id}/branches?search={name}"))["branches"]
    return branch


async def test_snapshot_contains_auth(api: Client, clock: ManualClock) -> None:
    scenario = RestoreScenario(api, clock)
    await scenario.set_up()
    await api.request("POST", f"{scenario.main_path}/auth", BETTER_AUTH)
    assert (await add_user(api, scenario.main_path)).status == 201
    without = await scenario.finished_restore()
    assert not await has_auth(api, f"{scenario.path}/branches/{without}")
    scenario.snapshot = await scenario.take_snapshot(scenario.main)
    clock.advance(9)
    await api.send("DELETE", f"{scenario.main_path}/auth", {"delete_data": True})
    restored = f"{scenario.path}/branches/{await scenario.finished_restore(name='restored')}"
    assert (await add_user(api, restored)).status == 409


async def test_auth_starts_no_operations(api: Client, project_id: str, auth_path: str) -> None:
    before = await api.actions(project_id)
    await api.send("PATCH", f"{auth_path}/config", {"name": "shop"})
    await api.send("DELETE", auth_path)
    assert await api.actions(project_id) == before == ["create_timeline", "start_compute"]


async def test_project_scoped_key_manages_auth(
    api: Client, project_id: str, branch_path: str
) -> None:
    _, key = await project_key(api, project_id)
    await api.request("POST", f"{branch_path}/auth", BETTER_AUTH, key=key)
    other = await api.new_user_key("other@example.com")
    assert (await api.send("GET", f"{branch_path}/auth", key=other)).status == 404


async def test_recovered_branch_has_its_auth(
    api: Client, clock: ManualClock, project_id: str, auth_path: str
) -> None:
    assert await api.get(auth_path)
    child = branch_path_of(await api.branch(project_id))
    clock.advance(9)
    await api.request("DELETE", child)
    assert (await api.send("GET", f"{child}/auth")).status == 404
    await api.request("POST", f"{child}/recover")
    assert await has_auth(api, child)


async def test_auth_survives_a_restart_and_no_reset(tmp_path: Path) -> None:
    data = tmp_path / "plane.db"
    async with serve(data=data) as api:
        branch = branch_path_of(await api.project())
        await api.request("POST", f"{branch}/auth", BETTER_AUTH)
        assert (await add_user(api, branch)).status == 201
        key = api.key
    async with serve(key, data=data) as api:
        assert (await add_user(api, branch)).status == 409
        await api.control_plane.reset()
        branch = branch_path_of(await api.project())
        assert not await has_auth(api, branch)
