"""Root branches: the first one, schema-only ones, and the restore of roots and their children."""

import pytest

from control_plane.tests.client import Client, branch_path_of
from neonctl_local import ManualClock

SECOND = "2026-01-01T00:00:05Z"


@pytest.mark.fact("schema-only-1", "schema-only-2", "schema-only-3", "branches-10")
async def test_schema_only_branch_shares_no_history_with_its_source(
    api: Client, project_id: str
) -> None:
    main = await api.main_branch(project_id)
    source = await api.branch(project_id)
    created = await api.branch(
        project_id, parent_id=source["branch"]["id"], init_source="schema-only", protected=True
    )
    parents = {"parent_id", "parent_lsn", "parent_timestamp"}
    assert not created["branch"].keys() & parents
    await api.request("DELETE", branch_path_of(source))
    await api.request("POST", f"{branch_path_of(created)}/set_as_default")
    path = f"/projects/{project_id}/branches/{main['id']}"
    await api.expect_error(422, "root", "DELETE", path)


@pytest.mark.fact("restore-2", "restore-3", "restore-4")
async def test_root_that_is_restored_to_its_past_stays_a_root(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    main = await api.main_branch(project_id)
    path = f"/projects/{project_id}/branches"
    computes = await api.get(f"{path}/{main['id']}/endpoints")
    clock.advance(9)
    body = {"source_branch_id": main["id"], "source_timestamp": SECOND}
    body["preserve_under_name"] = "backup"
    restored = (await api.request("POST", f"{path}/{main['id']}/restore", body))["branch"]
    assert (restored["id"], restored["name"]) == (main["id"], "main")
    assert restored["last_reset_at"] == "2026-01-01T00:00:09Z"
    (endpoint,) = (await api.get(f"{path}/{main['id']}/endpoints"))["endpoints"]
    assert endpoint["id"] == computes["endpoints"][0]["id"]
    (backup,) = (await api.get(f"{path}?search=backup"))["branches"]
    assert not (restored.keys() | backup.keys()) & {"parent_id"}
    await api.request("DELETE", f"{path}/{backup['id']}")
    await api.expect_error(422, "root", "DELETE", f"{path}/{main['id']}")


@pytest.mark.fact("restore-9", "restore-10")
async def test_root_that_is_restored_from_its_child_stays_a_root(
    api: Client, project_id: str
) -> None:
    main = await api.main_branch(project_id)
    child = (await api.branch(project_id))["branch"]["id"]
    path = f"/projects/{project_id}/branches"
    body = {"source_branch_id": child, "preserve_under_name": "backup"}
    restored = (await api.request("POST", f"{path}/{main['id']}/restore", body))["branch"]
    assert "parent_id" not in restored
    (backup,) = (await api.get(f"{path}?search=backup"))["branches"]
    await api.expect_error(422, "children", "DELETE", f"{path}/{backup['id']}")


@pytest.mark.fact("restore-6", "restore-7")
@pytest.mark.parametrize("point", [{"source_timestamp": SECOND}, {"source_lsn": "0/1A2B3C"}])
async def test_only_root_branches_have_a_past_to_restore(
    api: Client, clock: ManualClock, project_id: str, point: dict[str, str]
) -> None:
    main = await api.main_branch(project_id)
    child = await api.branch(project_id)
    clock.advance(9)
    body = {"source_branch_id": child["branch"]["id"], "preserve_under_name": "backup", **point}
    for branch_id in (child["branch"]["id"], main["id"]):
        path = f"/projects/{project_id}/branches/{branch_id}/restore"
        await api.expect_error(422, "no root branch", "POST", path, body)
    body = {"source_branch_id": main["id"], **point}
    await api.request("POST", f"{branch_path_of(child)}/restore", body)


@pytest.mark.fact("snapshots-8", "reset-3")
async def test_branch_of_a_snapshot_has_no_past_and_its_children_wait_a_day_for_a_reset(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    main = await api.main_branch(project_id)
    path = f"/projects/{project_id}"
    taken = await api.request("POST", f"{path}/branches/{main['id']}/snapshot")
    clock.advance(9)
    finalize = {"finalize_restore": True}
    taken = f"{path}/snapshots/{taken['snapshot']['id']}"
    root = (await api.request("POST", f"{taken}/restore", finalize))["branch"]["id"]
    child = await api.branch(project_id)
    assert child["branch"]["parent_id"] == root
    body = {"source_branch_id": root, "source_timestamp": "2026-01-01T00:00:09Z"}
    body["preserve_under_name"] = "backup"
    await api.expect_error(422, "snapshot", "POST", f"{path}/branches/{root}/restore", body)
    reset, body = f"{branch_path_of(child)}/restore", {"source_branch_id": root}
    clock.advance(86399)
    await api.expect_error(422, "2026-01-02T00:00:09Z", "POST", reset, body)
    clock.advance(1)
    await api.request("POST", reset, body)


@pytest.mark.fact("protected-6")
async def test_child_of_a_protected_branch_keeps_its_passwords_when_it_is_reset(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    main = f"/projects/{project_id}/branches/{(await api.main_branch(project_id))['id']}"
    await api.request("PATCH", main, {"branch": {"protected": True}})
    child = await api.branch(project_id)
    await api.request("POST", f"{main}/roles", {"role": {"name": "new"}})

    async def password(path: str, role: str) -> str:
        return str((await api.get(f"{path}/roles/{role}/reveal_password"))["password"])

    path = branch_path_of(child)
    before = await password(path, "neondb_owner")
    clock.advance(9)
    body = {"source_branch_id": child["branch"]["parent_id"]}
    for point in ({}, {"source_timestamp": "2026-01-01T00:00:09Z"}):
        await api.request("POST", f"{path}/restore", body | point)
        assert await password(path, "neondb_owner") == before
        assert await password(path, "new") != await password(main, "new")
