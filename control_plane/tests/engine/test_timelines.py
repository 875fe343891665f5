"""Archiving and unarchiving of branches: section 2.3 of the specification."""

import pytest
from msgspec.structs import replace

from control_plane.tests.client import Client, actions_of
from neonctl_local import BackgroundIntervals, ManualClock

DAY = 24 * 3600.0
ARCHIVING = BackgroundIntervals(
    suspend_after=None,
    check_availability_every=None,
    detach_after=None,
    archive_after_age=14 * DAY,
    archive_after_idle=DAY,
)


async def archived_branches(api: Client, project_id: str) -> list[str]:
    found = await api.operations(project_id)
    return [op["branch_id"] for op in found if op["action"] == "timeline_archive"]


@pytest.mark.control_plane(
    intervals=replace(ARCHIVING, archive_after_age=100.0, archive_after_idle=10.0)
)
async def test_branch_is_archived_after_its_compute_was_moved_away(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    source = await api.branch(project_id, compute=True)
    destination = (await api.branch(project_id))["branch"]["id"]
    clock.advance(9)
    path = f"/projects/{project_id}/endpoints/{source['endpoints'][0]['id']}"
    await api.request("PATCH", path, {"endpoint": {"branch_id": destination}})
    clock.advance(200)
    assert await archived_branches(api, project_id) == [source["branch"]["id"]]


@pytest.mark.fact("archive-1", "archive-7")
@pytest.mark.control_plane(
    intervals=BackgroundIntervals(check_availability_every=None, detach_after=None)
)
async def test_old_idle_branch_is_archived_and_unarchived_when_needed(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await api.branch(project_id, compute=True)
    branch_id, endpoint_id = created["branch"]["id"], created["endpoints"][0]["id"]
    clock.advance(14 * DAY - 1)
    assert (await api.actions(project_id))[4:] == ["suspend_compute", "suspend_compute"]
    clock.advance(1)
    (archiving,) = (await api.operations(project_id))[6:]
    assert archiving["action"] == "timeline_archive"
    assert archiving["created_at"] == "2026-01-15T00:00:00Z"
    clock.advance(1)
    path = f"/projects/{project_id}/branches/{branch_id}"
    assert (await api.get(path))["branch"]["current_state"] == "archived"
    started = await api.request("POST", f"/projects/{project_id}/endpoints/{endpoint_id}/start")
    assert actions_of(started) == ["timeline_unarchive", "start_compute"]
    clock.advance(1)
    assert (await api.get(path))["branch"]["current_state"] == "ready"
    clock.advance(1 + 300 + 1 + DAY)
    assert (await api.actions(project_id))[-1] == "timeline_archive"


@pytest.mark.fact("archive-11")
@pytest.mark.parametrize("change", [{"protected": True}, {"default": True}])
@pytest.mark.control_plane(intervals=ARCHIVING)
async def test_protected_and_default_branches_are_not_archived(
    api: Client, clock: ManualClock, project_id: str, change: dict[str, bool]
) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    path = f"/projects/{project_id}/branches/{branch_id}"
    if "protected" in change:
        await api.request("PATCH", path, {"branch": change})
    else:
        await api.request("POST", f"{path}/set_as_default")
    clock.advance(30 * DAY)
    assert branch_id not in await archived_branches(api, project_id)


@pytest.mark.control_plane(intervals=ARCHIVING)
async def test_branch_of_a_recovered_project_is_archived(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    await api.request("DELETE", f"/projects/{project_id}")
    await api.request("POST", f"/projects/{project_id}/recover")
    clock.advance(15 * DAY)
    last = (await api.operations(project_id))[-1]
    assert (last["action"], last["branch_id"]) == ("timeline_archive", branch_id)


@pytest.mark.fact("archive-12")
async def test_archived_branch_is_unarchived_when_it_becomes_the_default(
    api: Client, project_id: str
) -> None:
    created = await api.branch(project_id, archived=True)
    assert actions_of(created) == ["create_branch", "timeline_archive"]
    assert created["branch"]["pending_state"] == "archived"
    path = f"/projects/{project_id}/branches/{created['branch']['id']}/set_as_default"
    changed = await api.request("POST", path)
    assert actions_of(changed) == ["timeline_unarchive"]


@pytest.mark.fact("archive-2", "archive-3", "archive-9")
@pytest.mark.control_plane(intervals=ARCHIVING)
async def test_branch_is_archived_after_its_children_and_unarchived_before_them(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    parent = (await api.branch(project_id))["branch"]["id"]
    clock.advance(10 * DAY)
    child = (await api.branch(project_id, parent_id=parent))["branch"]["id"]
    clock.advance(13 * DAY)
    assert await archived_branches(api, project_id) == []
    clock.advance(3 * DAY)
    assert await archived_branches(api, project_id) == [child, parent]
    created = await api.branch(project_id, parent_id=child)
    operations = [(op["action"], op["branch_id"]) for op in created["operations"]]
    grandchild = created["branch"]["id"]
    assert operations == [
        ("timeline_unarchive", parent),
        ("timeline_unarchive", child),
        ("create_branch", grandchild),
    ]
    path = f"/projects/{project_id}/branches"
    for branch_id in (grandchild, child):
        await api.request("DELETE", f"{path}/{branch_id}")
    clock.advance(2 * DAY)
    assert await archived_branches(api, project_id) == [child, parent, parent]


@pytest.mark.fact("archive-5")
@pytest.mark.control_plane(lock="branch")
async def test_archived_branch_is_unarchived_when_it_is_protected(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    created = await api.branch(project_id, archived=True)
    path = f"/projects/{project_id}/branches/{created['branch']['id']}"
    body = {"branch": {"protected": True}}
    assert (await api.send("PATCH", path, body)).status == 423
    clock.advance(9)
    changed = await api.request("PATCH", path, body)
    assert actions_of(changed) == ["timeline_unarchive"]
    assert changed["branch"]["protected"]
    clock.advance(9)
    assert (await api.get(path))["branch"]["current_state"] == "ready"


@pytest.mark.fact("archive-4", "archive-6", "archive-10")
@pytest.mark.parametrize("change", ["roles", "databases", "restore"])
async def test_changed_or_reset_branch_is_unarchived(
    api: Client, clock: ManualClock, project_id: str, change: str
) -> None:
    created = await api.branch(project_id, archived=True)
    path = f"/projects/{project_id}/branches/{created['branch']['id']}"
    clock.advance(9)
    bodies: dict[str, object] = {
        "roles": {"role": {"name": "ada"}},
        "databases": {"database": {"name": "shop", "owner_name": "neondb_owner"}},
        "restore": {"source_branch_id": created["branch"]["parent_id"]},
    }
    assert (await api.get(path))["branch"]["current_state"] == "archived"
    await api.request("POST", f"{path}/{change}", bodies[change])
    clock.advance(9)
    assert (await api.get(path))["branch"]["current_state"] == "ready"
