"""Creating, reading, listing and deleting branches."""

import pytest

from control_plane.tests.client import Client, actions_of, branch_path_of
from neonctl_local import ManualClock


@pytest.mark.fact("branches-2")
async def test_branch_without_a_compute_starts_one_operation(api: Client, project_id: str) -> None:
    created = await api.branch(project_id)
    assert actions_of(created) == ["create_branch"]
    assert (created["endpoints"], "connection_uris" in created) == ([], False)
    assert created["branch"]["name"] == created["branch"]["id"]
    assert created["branch"]["parent_id"] == (await api.main_branch(project_id))["id"]


async def test_branch_with_a_compute_has_a_connection_uri(api: Client, project_id: str) -> None:
    created = await api.branch(project_id, name="preview", compute=True)
    (endpoint,), (uri,) = created["endpoints"], created["connection_uris"]
    assert [role["name"] for role in created["roles"]] == ["neondb_owner"]
    assert [database["name"] for database in created["databases"]] == ["neondb"]
    assert "password" not in created["roles"][0]
    password = uri["connection_parameters"]["password"]
    assert f":{password}@{endpoint['host']}/" in uri["connection_uri"]


async def test_branch_has_state_init_until_create_branch_has_finished(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = (await api.branch(project_id))["branch"]
    assert (created["current_state"], created["pending_state"]) == ("init", "ready")
    clock.advance(1)
    branch = (await api.get(f"/projects/{project_id}/branches/{created['id']}"))["branch"]
    assert (branch["current_state"], "pending_state" in branch) == ("ready", False)
    assert branch["state_changed_at"] == "2026-01-01T00:00:01Z"


async def test_branch_whose_creation_fails_keeps_state_init(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("create_branch")
    created = (await api.branch(project_id))["branch"]
    clock.advance(9)
    branch = (await api.get(f"/projects/{project_id}/branches/{created['id']}"))["branch"]
    assert branch["current_state"] == "init"


@pytest.mark.fact("records-3")
async def test_parent_of_a_branch_must_be_in_the_same_project(api: Client, project_id: str) -> None:
    parent = (await api.branch(project_id, name="parent"))["branch"]["id"]
    child = await api.branch(project_id, name="child", parent_id=parent)
    assert child["branch"]["parent_id"] == parent
    other = (await api.project())["branch"]["id"]
    body = {"branch": {"parent_id": other}}
    await api.expect_error(
        404, "branch not found", "POST", f"/projects/{project_id}/branches", body
    )


async def test_branch_has_an_annotation(api: Client, project_id: str) -> None:
    body = {"branch": {"name": "preview"}, "annotation_value": {"pr": "17"}}
    created = await api.request("POST", f"/projects/{project_id}/branches", body)
    branch_id = created["branch"]["id"]
    read = await api.get(f"/projects/{project_id}/branches/{branch_id}")
    assert read["annotation"]["value"] == {"pr": "17"}
    listed = await api.get(f"/projects/{project_id}/branches")
    assert set(listed["annotations"]) == {branch_id}


async def test_branches_are_sorted_by_last_change_by_default(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    for name in ("first", "second"):
        clock.advance(1)
        created = await api.branch(project_id, name=name)
    clock.advance(1)
    main = (await api.main_branch(project_id))["id"]
    await api.request("PATCH", f"/projects/{project_id}/branches/{main}", {"branch": {}})
    assert await api.branch_names(project_id) == ["main", "second", "first"]
    assert created["branch"]["name"] == "second"


async def test_branches_are_searched_and_counted(api: Client, project_id: str) -> None:
    branch_id = (await api.branch(project_id, name="preview/pr-17"))["branch"]["id"]
    await api.branch(project_id, name="other")
    assert await api.branch_names(project_id, "?search=pr-17") == ["preview/pr-17"]
    assert await api.branch_names(project_id, f"?search={branch_id}") == ["preview/pr-17"]
    count = f"/projects/{project_id}/branches/count"
    assert await api.get(count) == {"count": 3}
    assert await api.get(f"{count}?search=pr") == {"count": 1}


@pytest.mark.fact("branches-16", "branches-17", "branches-18")
async def test_deleting_a_branch_suspends_its_computes_first(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await api.branch(project_id, compute=True)
    clock.advance(5)
    path = f"/projects/{project_id}/branches/{created['branch']['id']}"
    deleted = await api.request("DELETE", path)
    assert actions_of(deleted) == ["suspend_compute", "delete_timeline"]
    assert deleted["branch"]["pending_state"] == "storage_deleted"
    assert path.rpartition("/")[2] not in str(await api.get(f"/projects/{project_id}/branches"))
    assert (await api.send("GET", path)).status == 404
    endpoint = created["endpoints"][0]["id"]
    assert (await api.send("GET", f"/projects/{project_id}/endpoints/{endpoint}")).status == 404


async def test_deleting_a_deleted_branch_is_204(api: Client, project_id: str) -> None:
    path = branch_path_of(await api.branch(project_id))
    await api.request("DELETE", path)
    again = await api.send("DELETE", path)
    assert (again.status, again.content) == (204, b"")
    unknown = await api.send("DELETE", f"/projects/{project_id}/branches/br-never-was-1")
    assert unknown.status == 404


async def test_unknown_source_of_a_branch_is_400(api: Client, project_id: str) -> None:
    body = {"branch": {"init_source": "schema_only"}}
    await api.expect_error(400, "init_source", "POST", f"/projects/{project_id}/branches", body)
    assert await api.branch_names(project_id) == ["main"]


@pytest.mark.fact("branches-3", "branches-5", "branches-6")
async def test_name_has_any_characters_but_at_most_256(api: Client, project_id: str) -> None:
    path = f"/projects/{project_id}/branches"
    for name in ("n" * 256, "feature/a b", 'it\'s "quoted"', "🚀"):
        assert (await api.branch(project_id, name=name))["branch"]["name"] == name
    for name in ("n" * 257, "", " "):
        await api.expect_error(400, "branch.name", "POST", path, {"branch": {"name": name}})


@pytest.mark.fact("branches-7")
async def test_request_without_a_body_creates_a_branch_of_the_default_branch(
    api: Client, project_id: str
) -> None:
    created = await api.request("POST", f"/projects/{project_id}/branches")
    assert created["branch"]["parent_id"] == (await api.main_branch(project_id))["id"]
    assert created["endpoints"] == []


@pytest.mark.fact("branches-8", "branches-9", "computes-3")
async def test_response_for_a_branch_with_a_compute_has_all_that_was_created(
    api: Client, project_id: str
) -> None:
    created = await api.branch(project_id, compute=True)
    assert created.keys() == {
        *("branch", "endpoints", "operations", "roles", "databases", "connection_uris")
    }
    branch, (endpoint,) = created["branch"], created["endpoints"]
    assert (branch["current_state"], branch["pending_state"]) == ("init", "ready")
    assert (endpoint["current_state"], endpoint["pending_state"]) == ("init", "active")
    assert actions_of(created) == ["create_branch", "start_compute"]
    parameters = created["connection_uris"][0]["connection_parameters"]
    assert parameters.keys() == {"database", "password", "role", "host", "pooler_host"}
    assert parameters["pooler_host"] == parameters["host"].replace(".", "-pooler.", 1)


@pytest.mark.fact("branches-13", "branches-19")
async def test_default_branch_is_renamed_and_listed_first(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    main = (await api.main_branch(project_id))["id"]
    await api.branch(project_id, name="other")
    clock.advance(1)
    path = f"/projects/{project_id}/branches"
    await api.request("PATCH", f"{path}/{main}", {"branch": {"name": "trunk"}})
    page = await api.get(path)
    assert [branch["name"] for branch in page["branches"]] == ["trunk", "other"]
    assert page["pagination"] == {"sort_by": "updated_at", "sort_order": "DESC"}


@pytest.mark.fact("branches-14", "branches-15", "restore-12", "restore-13")
async def test_time_before_the_window_or_the_parent_is_refused(
    api: Client, clock: ManualClock
) -> None:
    created = await api.project()
    project = f"/projects/{created['project']['id']}"
    assert created["project"]["history_retention_seconds"] == 86400
    clock.advance(86400 * 3)
    for time in ("2026-01-01T00:00:00Z", "2025-12-31T00:00:00Z"):
        body: dict[str, object] = {"branch": {"parent_timestamp": time}}
        await api.expect_error(400, "restore window", "POST", f"{project}/branches", body)
    too_long = {"project": {"history_retention_seconds": 2592001}}
    await api.expect_error(400, "history_retention_seconds", "PATCH", project, too_long)
    longest = {"project": {"history_retention_seconds": 2592000}}
    await api.request("PATCH", project, longest)
    body = {"branch": {"parent_timestamp": "2026-01-01T00:00:00Z"}}
    await api.request("POST", f"{project}/branches", body)
    body = {"branch": {"parent_timestamp": "2025-12-31T23:59:59Z"}}
    await api.expect_error(400, "restore window", "POST", f"{project}/branches", body)
    await api.request("PATCH", project, {"project": {"history_retention_seconds": 0}})
    body = {"branch": {"parent_timestamp": "2026-01-03T23:59:59Z"}}
    await api.expect_error(400, "restore window", "POST", f"{project}/branches", body)


@pytest.mark.fact("reset-1", "reset-4", "reset-5")
async def test_reset_needs_a_parent_and_a_backup_only_with_children(
    api: Client, project_id: str
) -> None:
    assert "parent_id" not in await api.main_branch(project_id)
    created = await api.branch(project_id, name="child")
    path, parent = f"{branch_path_of(created)}/restore", created["branch"]["parent_id"]
    await api.request("POST", path, {"source_branch_id": parent})
    assert await api.branch_names(project_id, "?sort_by=name&sort_order=asc") == ["child", "main"]
    await api.branch(project_id, parent_id=created["branch"]["id"])
    body = {"source_branch_id": parent}
    await api.expect_error(400, "preserve_under_name", "POST", path, body)
