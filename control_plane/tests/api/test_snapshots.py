"""Snapshots, and the backup schedules of branches."""

import re
from typing import Any

import pytest

from control_plane.tests.client import Client, actions_of, branch_path_of, state_of
from neonctl_local import ManualClock


# Any: as Client.get.
async def snapshot_of_main(api: Client, project_id: str, query: str = "") -> Any:
    """Take a snapshot of the default branch. Return the response."""
    main = await api.main_branch(project_id)
    path = f"/projects/{project_id}/branches/{main['id']}/snapshot{query}"
    return await api.request("POST", path)


async def snapshot_names(api: Client, project_id: str) -> list[str]:
    page = await api.get(f"/projects/{project_id}/snapshots")
    return [snapshot["name"] for snapshot in page["snapshots"]]


async def test_taking_a_snapshot_starts_create_branch(api: Client, project_id: str) -> None:
    taken = await snapshot_of_main(api, project_id, "?name=before&expires_at=2026-02-01T00:00:00Z")
    snapshot, (operation,) = taken["snapshot"], taken["operations"]
    assert (operation["action"], operation["status"]) == ("create_branch", "running")
    assert operation["branch_id"] == snapshot["source_branch_id"]
    assert snapshot.items() >= {"name": "before", "manual": True}.items()
    assert snapshot["expires_at"] == "2026-02-01T00:00:00Z"
    assert (await api.get(f"/projects/{project_id}/snapshots"))["snapshots"] == [snapshot]


async def test_snapshots_are_listed_newest_first_and_named_by_id_by_default(
    api: Client, project_id: str
) -> None:
    first = (await snapshot_of_main(api, project_id))["snapshot"]
    await snapshot_of_main(api, project_id, "?name=second")
    assert first["name"] == first["id"]
    assert await snapshot_names(api, project_id) == ["second", first["id"]]


async def test_snapshot_has_a_slug_that_is_unique_in_the_project(
    api: Client, project_id: str
) -> None:
    generated = (await snapshot_of_main(api, project_id))["snapshot"]
    assert re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])?", generated["slug"])
    assert generated["slug"] != generated["id"]
    chosen = (await snapshot_of_main(api, project_id, "?slug=before-1"))["snapshot"]
    assert chosen["slug"] == "before-1"
    path = f"/projects/{project_id}/branches/{chosen['source_branch_id']}/snapshot"
    await api.expect_error(409, "'before-1' is taken", "POST", f"{path}?slug=before-1")
    await api.request("DELETE", f"/projects/{project_id}/snapshots/{chosen['id']}")
    again = await snapshot_of_main(api, project_id, "?slug=before-1")
    assert again["snapshot"]["slug"] == "before-1"


@pytest.mark.parametrize("slug", ["Before", "1st", "a-", "a_b", "", "a" * 300])
async def test_invalid_slug_is_a_400(api: Client, project_id: str, slug: str) -> None:
    main = await api.main_branch(project_id)
    path = f"/projects/{project_id}/branches/{main['id']}/snapshot?slug={slug}"
    await api.expect_error(400, "invalid request: slug: ", "POST", path)


async def test_snapshot_is_taken_at_a_time_or_an_lsn(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(60)
    at = "2026-01-01T00:00:30Z"
    taken = await snapshot_of_main(api, project_id, f"?timestamp={at}")
    assert taken["snapshot"]["timestamp"] == at
    for lsn in ("0/1A2B3C", "ffffffff/ffffffff"):
        taken = await snapshot_of_main(api, project_id, f"?lsn={lsn}")
        assert (taken["snapshot"]["lsn"], "timestamp" in taken["snapshot"]) == (lsn, False)


@pytest.mark.fact("snapshots-2", "snapshots-16")
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("lsn=0/1&timestamp=2026-01-01T00:00:00Z", "lsn"),
        ("timestamp=2025-12-31T23:59:59Z", "timestamp"),
        ("timestamp=2026-01-01T00:00:01Z", "timestamp"),
        ("timestamp=yesterday", "timestamp"),
        ("timestamp=2026-01-01T00:00:00", "timestamp"),
        ("lsn=0x1A2B3C", "lsn"),
        ("lsn=0/123456789", "lsn"),
        ("lsn=/1", "lsn"),
        ("lsn=0/1%0A", "lsn"),
        (f"name={'n' * 257}", "name"),
        ("expires_at=2026-01-01T00:00:00Z", "expires_at"),
        ("expires_at=9999-12-31T23:59:59-14:00", "expires_at"),
    ],
)
async def test_error_for_an_invalid_snapshot_names_the_parameter(
    api: Client, project_id: str, query: str, field: str
) -> None:
    main = await api.main_branch(project_id)
    path = f"/projects/{project_id}/branches/{main['id']}/snapshot?{query}"
    await api.expect_error(400, f": {field}:", "POST", path)
    assert await snapshot_names(api, project_id) == []


async def test_snapshot_is_renamed_and_deleted(api: Client, project_id: str) -> None:
    snapshot = (await snapshot_of_main(api, project_id))["snapshot"]
    path = f"/projects/{project_id}/snapshots/{snapshot['id']}"
    renamed = await api.request("PATCH", path, {"snapshot": {"name": "renamed"}})
    assert renamed == {"snapshot": snapshot | {"name": "renamed"}}
    await api.expect_error(400, "snapshot.name", "PATCH", path, {"snapshot": {"name": ""}})
    deleted = await api.send("DELETE", path)
    assert deleted.status == 202
    assert actions_of(deleted.json) == ["delete_timeline"]
    assert await snapshot_names(api, project_id) == []
    await api.expect_error(404, snapshot["id"], "PATCH", path, {"snapshot": {}})
    await api.expect_error(404, snapshot["id"], "DELETE", path)


@pytest.mark.fact("snapshots-17")
async def test_expiry_of_a_snapshot_is_set_and_removed(api: Client, project_id: str) -> None:
    snapshot = (await snapshot_of_main(api, project_id))["snapshot"]
    path = f"/projects/{project_id}/snapshots/{snapshot['id']}"
    time = "2026-02-01T00:00:00Z"
    changed = await api.request("PATCH", path, {"snapshot": {"expires_at": time}})
    assert changed == {"snapshot": snapshot | {"expires_at": time}}
    past = {"snapshot": {"expires_at": "2025-02-01T00:00:00Z"}}
    await api.expect_error(400, "expires_at", "PATCH", path, past)
    removed = await api.request("PATCH", path, {"snapshot": {"expires_at": None}})
    assert removed == {"snapshot": snapshot}


async def test_snapshot_of_another_project_is_404(api: Client, project_id: str) -> None:
    snapshot = (await snapshot_of_main(api, project_id))["snapshot"]
    other = (await api.project())["project"]["id"]
    assert await snapshot_names(api, other) == []
    assert (await api.send("DELETE", f"/projects/{other}/snapshots/{snapshot['id']}")).status == 404


@pytest.mark.fact("snapshots-17")
async def test_snapshot_is_deleted_when_it_expires(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await snapshot_of_main(api, project_id, "?expires_at=2026-01-01T00:01:00Z")
    clock.advance(59)
    assert len(await snapshot_names(api, project_id)) == 1
    clock.advance(9)
    assert await snapshot_names(api, project_id) == []
    last = (await api.operations(project_id))[-1]
    assert (last["action"], last["created_at"]) == ("delete_timeline", "2026-01-01T00:01:00Z")


async def test_snapshot_that_expired_in_a_deleted_project_is_deleted_at_recovery(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await snapshot_of_main(api, project_id, "?name=due&expires_at=2026-01-01T01:00:00Z")
    await snapshot_of_main(api, project_id, "?name=later&expires_at=2026-01-01T03:00:00Z")
    await api.request("DELETE", f"/projects/{project_id}")
    clock.advance(2 * 3600)
    assert (await api.actions(project_id))[-1] == "delete_tenant"
    await api.request("POST", f"/projects/{project_id}/recover")
    assert await snapshot_names(api, project_id) == ["later"]
    last = (await api.operations(project_id))[-1]
    assert (last["action"], last["created_at"]) == ("delete_timeline", "2026-01-01T02:00:00Z")
    clock.advance(3600)
    assert await snapshot_names(api, project_id) == []


@pytest.mark.control_plane(lock="branch")
async def test_taking_and_deleting_a_snapshot_are_423_while_the_branch_is_locked(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    main = await api.main_branch(project_id)
    path = f"/projects/{project_id}/branches/{main['id']}/snapshot"
    assert (await api.send("POST", path)).status == 423
    clock.advance(9)
    snapshot = (await api.request("POST", path))["snapshot"]
    path = f"/projects/{project_id}/snapshots/{snapshot['id']}"
    assert (await api.send("DELETE", path)).status == 423
    clock.advance(9)
    assert (await api.send("DELETE", path)).status == 202


@pytest.mark.fact("snapshots-3")
async def test_branch_has_a_backup_schedule(api: Client, branch_path: str) -> None:
    path = f"{branch_path}/backup_schedule"
    assert await api.get(path) == {"schedule": []}
    schedule = [
        {"frequency": "daily", "hour": 3, "retention_seconds": 7200},
        {"frequency": "monthly", "hour": 0, "day": 31},
    ]
    for sent in (schedule, []):
        assert await api.request("PUT", path, {"schedule": sent}) == {}
        assert await api.get(path) == {"schedule": sent}


@pytest.mark.fact("snapshots-1", "snapshots-4")
async def test_only_root_branches_have_snapshots_and_a_backup_schedule(
    api: Client, project_id: str
) -> None:
    path = branch_path_of(await api.branch(project_id))
    await api.expect_error(422, "root", "POST", f"{path}/snapshot")
    body = {"schedule": [{"frequency": "daily", "hour": 3}]}
    await api.expect_error(422, "root", "PUT", f"{path}/backup_schedule", body)


@pytest.mark.fact("snapshots-14", "snapshots-15")
async def test_names_of_snapshots_are_unique_in_a_project(api: Client, project_id: str) -> None:
    await snapshot_of_main(api, project_id, "?name=friday")
    root = await api.branch(project_id, init_source="schema-only")
    path = f"{branch_path_of(root)}/snapshot"
    await api.expect_error(409, "'friday'", "POST", f"{path}?name=friday")
    taken = (await api.request("POST", f"{path}?name=monday"))["snapshot"]
    path = f"/projects/{project_id}/snapshots/{taken['id']}"
    await api.expect_error(409, "'friday'", "PATCH", path, {"snapshot": {"name": "friday"}})
    await api.request("PATCH", path, {"snapshot": {"name": "monday"}})
    await snapshot_of_main(api, (await api.project())["project"]["id"], "?name=friday")


@pytest.mark.fact("snapshots-18", "snapshots-19", "snapshots-20", "snapshots-21", "snapshots-22")
@pytest.mark.fact("snapshots-23")
@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({}, "frequency"),
        ({"frequency": "now"}, "frequency"),
        ({"frequency": "daily", "hour": 24}, "hour"),
        ({"frequency": "monthly", "day": 0}, "day"),
        ({"frequency": "yearly", "hour": 0, "day": 31, "month": 12}, "frequency"),
        ({"frequency": "hourly"}, "frequency"),
        ({"frequency": "daily"}, "hour"),
        ({"frequency": "weekly", "hour": 3}, "day"),
        ({"frequency": "weekly", "day": 3}, "hour"),
        ({"frequency": "weekly", "hour": 3, "day": 8}, "day"),
        ({"frequency": "monthly", "hour": 3}, "day"),
        ({"frequency": "monthly", "day": 3}, "hour"),
        ({"frequency": "monthly", "hour": 3, "day": 32}, "day"),
        ({"frequency": "daily", "hour": 3, "retention_seconds": 3599}, "retention_seconds"),
        ({"frequency": "daily", "hour": 3, "retention_seconds": 3024001}, "retention_seconds"),
    ],
)
async def test_error_for_an_invalid_schedule_names_the_field(
    api: Client, branch_path: str, item: object, field: str
) -> None:
    path, body = f"{branch_path}/backup_schedule", {"schedule": [item]}
    await api.expect_error(400, f"schedule[0].{field}", "PUT", path, body)


@pytest.mark.fact("snapshots-9")
async def test_snapshot_has_the_size_of_its_branch(
    api: Client, project_id: str, branch_path: str
) -> None:
    assert (await snapshot_of_main(api, project_id))["snapshot"]["full_size"] == 0
    sized = "UPDATE branches SET logical_size = 30000000"
    await state_of(api.control_plane).database.run(lambda tx: tx.execute(sized))
    taken = (await api.request("POST", f"{branch_path}/snapshot"))["snapshot"]
    assert taken["full_size"] == 30_000_000
