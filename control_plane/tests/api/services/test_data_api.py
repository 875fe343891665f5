"""The Data API of a database."""

from pathlib import Path

import pytest

from control_plane.tests.client import Client, branch_path_of, serve
from control_plane.tests.restores import RestoreScenario
from neonctl_local import ManualClock

DEFAULTS = {
    "db_aggregates_enabled": True,
    "db_anon_role": "anonymous",
    "db_max_rows": 1000,
    "db_schemas": ["public"],
    "jwt_role_claim_key": ".role",
    "openapi_mode": "disabled",
    "server_timing_enabled": False,
}


async def status_of(api: Client, branch_path: str, name: str = "neondb") -> int:
    return (await api.send("GET", f"{branch_path}/data-api/{name}")).status


@pytest.mark.fact("data-api-1")
async def test_data_api_is_created_read_changed_and_deleted(api: Client, branch_path: str) -> None:
    path = f"{branch_path}/data-api/neondb"
    (compute,) = (await api.get(f"{branch_path}/endpoints"))["endpoints"]
    url = f"https://{compute['id']}.apirest.us-east-2.aws.neon.invalid/neondb/rest/v1"
    created = await api.send("POST", path)
    assert (created.status, created.json) == (201, {"url": url})
    assert await api.get(path) == {"url": url, "status": "active", "settings": DEFAULTS}
    changed = await api.send("PATCH", path, {"settings": {"db_max_rows": 100}})
    assert (changed.status, changed.json) == (201, {})
    assert (await api.get(path))["settings"] == DEFAULTS | {"db_max_rows": 100}
    deleted = await api.send("DELETE", path)
    assert (deleted.status, deleted.json) == (200, {})
    assert await status_of(api, branch_path) == 404


async def test_new_settings_replace_all_others(api: Client, branch_path: str) -> None:
    path = f"{branch_path}/data-api/neondb"
    settings = {"db_anon_role": "guest", "db_schemas": ["shop"], "jwt_cache_max_lifetime": 60}
    await api.request("POST", path, {"settings": settings})
    assert (await api.get(path))["settings"] == DEFAULTS | settings
    await api.request("PATCH", path)
    assert (await api.get(path))["settings"] == DEFAULTS | settings
    await api.request("PATCH", path, {"settings": {"openapi_mode": "ignore-privileges"}})
    assert (await api.get(path))["settings"] == DEFAULTS | {"openapi_mode": "ignore-privileges"}


async def test_creating_a_data_api_twice_is_409(api: Client, branch_path: str) -> None:
    path = f"{branch_path}/data-api/neondb"
    await api.request("POST", path, {"auth_provider": "neon_auth"})
    await api.expect_error(409, "is already enabled", "POST", path)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"auth_provider": "external"}, "jwks_url"),
        ({"auth_provider": "external", "jwks_url": "ftp://example.com"}, "jwks_url"),
        ({"auth_provider": "clerk"}, "auth_provider"),
        ({"settings": {"db_max_rows": "all"}}, "settings.db_max_rows"),
        ({"settings": {"openapi_mode": None}}, "settings.openapi_mode"),
    ],
)
async def test_error_for_an_invalid_request_names_the_field(
    api: Client, branch_path: str, body: object, field: str
) -> None:
    path = f"{branch_path}/data-api/neondb"
    await api.expect_error(400, field, "POST", path, body)
    assert await status_of(api, branch_path) == 404


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_database_without_a_data_api_is_404(
    api: Client, branch_path: str, method: str
) -> None:
    words = "the Data API is not enabled"
    await api.expect_error(404, words, method, f"{branch_path}/data-api/neondb")


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
async def test_missing_database_or_branch_is_404(
    api: Client, project_id: str, branch_path: str, method: str
) -> None:
    path = f"{branch_path}/data-api/shop"
    await api.expect_error(404, "database 'shop' not found", method, path)
    path = f"/projects/{project_id}/branches/br-none/data-api/neondb"
    await api.expect_error(404, "branch not found", method, path)


async def test_name_of_the_database_is_encoded_in_the_url(api: Client, branch_path: str) -> None:
    await api.add_database(branch_path, "a b/ä")
    created = await api.request("POST", f"{branch_path}/data-api/a%20b%2F%C3%A4")
    assert created["url"].endswith(".neon.invalid/a%20b%2F%C3%A4/rest/v1")


async def test_data_api_follows_its_database(api: Client, branch_path: str) -> None:
    databases = f"{branch_path}/databases"
    await api.request("POST", f"{branch_path}/data-api/neondb")
    await api.request("PATCH", f"{databases}/neondb", {"database": {"name": "shop"}})
    assert await status_of(api, branch_path, "shop") == 200
    await api.request("DELETE", f"{databases}/shop")
    await api.add_database(branch_path, "shop")
    assert await status_of(api, branch_path, "shop") == 404


@pytest.mark.fact("data-api-3")
async def test_child_branch_has_the_data_api_of_its_parent_on_its_own_host(
    api: Client, project_id: str, branch_path: str
) -> None:
    settings = {"settings": {"db_max_rows": 10}}
    await api.request("POST", f"{branch_path}/data-api/neondb", settings)
    child = await api.branch(project_id, compute=True)
    found = await api.get(f"{branch_path_of(child)}/data-api/neondb")
    assert found["settings"]["db_max_rows"] == 10
    assert child["endpoints"][0]["id"] in found["url"]
    empty = await api.branch(project_id, init_source="schema-only")
    expiring = await api.branch(project_id, expires_at="2026-01-02T00:00:00Z")
    for other in (empty, expiring):
        assert await status_of(api, branch_path_of(other)) == 404


@pytest.mark.fact("projects-10")
async def test_recovered_project_has_no_data_api(
    api: Client, project_id: str, branch_path: str
) -> None:
    await api.request("POST", f"{branch_path}/data-api/neondb")
    await api.request("DELETE", f"/projects/{project_id}")
    await api.request("POST", f"/projects/{project_id}/recover")
    assert await status_of(api, branch_path) == 404


async def test_restored_branch_keeps_its_data_api(
    api: Client, clock: ManualClock, project_id: str, branch_path: str
) -> None:
    child = branch_path_of(await api.branch(project_id))
    clock.advance(9)
    await api.request("POST", f"{child}/data-api/neondb")
    await api.add_database(child, "shop")
    await api.request("POST", f"{child}/data-api/shop")
    body = {"source_branch_id": branch_path.rpartition("/")[2]}
    await api.request("POST", f"{child}/restore", body)
    assert await status_of(api, child) == 200
    await api.expect_error(404, "database 'shop' not found", "GET", f"{child}/data-api/shop")
    await api.add_database(child, "shop")
    assert await status_of(api, child, "shop") == 404


async def test_finalized_branch_takes_over_the_data_api_of_its_target(
    api: Client, clock: ManualClock
) -> None:
    scenario = RestoreScenario(api, clock)
    await scenario.set_up()
    created = await api.request("POST", f"{scenario.main_path}/data-api/neondb")
    restored = f"{scenario.path}/branches/{await scenario.finished_restore(finalize_restore=True)}"
    assert (await api.get(f"{restored}/data-api/neondb"))["url"] == created["url"]
    assert await status_of(api, scenario.main_path) == 404


async def test_data_api_survives_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "plane.db"
    async with serve(data=data) as api:
        path = f"{branch_path_of(await api.project())}/data-api/neondb"
        await api.request("POST", path, {"settings": {"db_max_rows": 9}})
        key = api.key
    async with serve(key, data=data) as api:
        assert (await api.get(path))["settings"] == DEFAULTS | {"db_max_rows": 9}
