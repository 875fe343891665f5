"""What the control plane does by itself: section 2.3 of the specification."""

import sqlite3
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from neonctl_async.local import BackgroundIntervals, LocalControlPlane, ManualClock
from neonctl_async.local.engine import background
from tests.local.client import Client

HOUR = 3600.0
DAY = 24 * HOUR
NEVER = BackgroundIntervals(
    suspend_after=None,
    check_availability_every=None,
    detach_after=None,
    archive_after_age=None,
)


# Any: as Client.get.
async def since_creation(api: Client, project_id: str) -> list[Any]:
    """The operations after the two of the project's creation."""
    return (await api.operations(project_id))[2:]


async def seen(api: Client, project_id: str) -> list[tuple[str, str]]:
    """Their actions, and when they began."""
    found = await since_creation(api, project_id)
    return [(op["action"], op["created_at"]) for op in found]


def only(**intervals: float) -> BackgroundIntervals:
    """Settings under which the plane does only one thing by itself."""
    names = ("suspend_after", "check_availability_every", "detach_after", "archive_after_age")
    return BackgroundIntervals(
        **{name: intervals.get(name) for name in names}, archive_after_idle=DAY
    )


async def test_an_idle_compute_is_suspended_at_the_time_it_is_due(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(2 + 300 - 0.001)
    assert await seen(api, project_id) == []
    clock.advance(1000)
    assert await seen(api, project_id) == [("suspend_compute", "2026-01-01T00:05:02Z")]
    (operation,) = await since_creation(api, project_id)
    assert (operation["status"], operation["updated_at"]) == ("finished", "2026-01-01T00:05:03Z")
    (endpoint,) = (await api.get(f"/projects/{project_id}/endpoints"))["endpoints"]
    assert (endpoint["current_state"], endpoint["suspended_at"]) == ("idle", "2026-01-01T00:05:03Z")


@pytest.mark.parametrize(("timeout", "expected"), [(60, 1), (-1, 0)])
async def test_a_compute_has_a_timeout_of_its_own(
    api: Client, clock: ManualClock, timeout: int, expected: int
) -> None:
    defaults = {"suspend_timeout_seconds": timeout}
    made = await api.project(default_endpoint_settings=defaults)
    clock.advance(63)
    assert len(await since_creation(api, made["project"]["id"])) == expected


async def test_what_is_used_is_not_idle(api: Client, clock: ManualClock, project_id: str) -> None:
    (branch,) = (await api.get(f"/projects/{project_id}/branches"))["branches"]
    clock.advance(200)
    path = f"/projects/{project_id}/branches/{branch['id']}/roles"
    await api.done("POST", path, {"role": {"name": "alex"}})
    clock.advance(200)
    assert [action for action, _ in await seen(api, project_id)] == ["apply_config"]
    clock.advance(101)
    actions = [action for action, _ in await seen(api, project_id)]
    assert actions == ["apply_config", "suspend_compute"]


async def test_a_suspension_that_fails_is_tried_again(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("suspend_compute")
    clock.advance(2 + 300 + 1 + 300 + 1)
    found = await since_creation(api, project_id)
    assert [op["status"] for op in found] == ["failed", "finished"]


async def test_branches_with_a_compute_are_checked_and_others_are_not(clock: ManualClock) -> None:
    intervals = only(check_availability_every=4 * HOUR)
    async with (
        LocalControlPlane(clock=clock, intervals=intervals) as control_plane,
        Client(control_plane) as api,
    ):
        made = await api.project()
        project_id = made["project"]["id"]
        created = await api.branch(project_id)
        clock.advance(9 * HOUR)
        checks = (await since_creation(api, project_id))[1:]
    assert created["endpoints"] == []
    assert [(op["action"], op["created_at"]) for op in checks] == [
        ("check_availability", "2026-01-01T04:00:00Z"),
        ("check_availability", "2026-01-01T08:00:00Z"),
    ]
    assert {op["branch_id"] for op in checks} == {made["branch"]["id"]}
    assert {op["endpoint_id"] for op in checks} == {made["endpoints"][0]["id"]}


async def test_a_branch_is_checked_while_it_has_a_compute(clock: ManualClock) -> None:
    intervals = only(check_availability_every=HOUR)
    async with (
        LocalControlPlane(clock=clock, intervals=intervals) as control_plane,
        Client(control_plane) as api,
    ):
        made = await api.project()
        project_id = made["project"]["id"]
        clock.advance(HOUR)
        await api.done("DELETE", f"/projects/{project_id}/endpoints/{made['endpoints'][0]['id']}")
        clock.advance(9 * HOUR)
        actions = [action for action, _ in await seen(api, project_id)]
    assert actions == ["check_availability", "suspend_compute"]


async def test_an_idle_project_is_detached_and_reattached_at_the_next_request(
    clock: ManualClock,
) -> None:
    intervals = BackgroundIntervals(check_availability_every=None, detach_after=7 * DAY)
    async with (
        LocalControlPlane(clock=clock, intervals=intervals) as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        clock.advance(6 * DAY)
        await api.get(f"/projects/{project_id}")
        clock.advance(7 * DAY - 1)
        assert [action for action, _ in await seen(api, project_id)] == ["suspend_compute"]
        clock.advance(30 * DAY)
        assert (await seen(api, project_id))[1:] == [
            ("tenant_detach", "2026-01-20T23:59:59Z"),
            ("tenant_reattach", "2026-02-12T23:59:59Z"),
        ]
        clock.advance(1)
        assert len(await since_creation(api, project_id)) == 3


@pytest.mark.parametrize("days", [0.0, 7.0])
async def test_a_project_whose_compute_runs_is_not_idle(clock: ManualClock, days: float) -> None:
    intervals = only(detach_after=days * DAY)
    async with (
        LocalControlPlane(clock=clock, intervals=intervals) as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        clock.advance(60)
        assert await seen(api, project_id) == []
        clock.advance(days * 30 * DAY)
        assert await seen(api, project_id) == []


async def test_a_detached_project_is_not_checked(clock: ManualClock) -> None:
    intervals = BackgroundIntervals(check_availability_every=DAY, detach_after=2.5 * DAY)
    async with (
        LocalControlPlane(clock=clock, intervals=intervals) as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        clock.advance(10.25 * DAY)
        actions = [action for action, _ in await seen(api, project_id)]
        assert actions == [
            *("suspend_compute", "check_availability", "check_availability"),
            *("tenant_detach", "tenant_reattach"),
        ]
        clock.advance(DAY)
        assert (await seen(api, project_id))[-1] == ("check_availability", "2026-01-12T06:00:00Z")


async def test_an_old_idle_branch_is_archived_and_unarchived_when_needed(
    clock: ManualClock,
) -> None:
    async with (
        LocalControlPlane(
            clock=clock,
            intervals=BackgroundIntervals(check_availability_every=None, detach_after=None),
        ) as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        created = await api.branch(project_id, compute=True)
        branch_id, endpoint_id = created["branch"]["id"], created["endpoints"][0]["id"]
        clock.advance(14 * DAY - 1)
        assert [op["action"] for op in (await since_creation(api, project_id))[2:]] == [
            "suspend_compute",
            "suspend_compute",
        ]
        clock.advance(1)
        assert (await seen(api, project_id))[4:] == [("timeline_archive", "2026-01-15T00:00:00Z")]
        clock.advance(1)
        path = f"/projects/{project_id}/branches/{branch_id}"
        assert (await api.get(path))["branch"]["current_state"] == "archived"
        started = await api.done("POST", f"/projects/{project_id}/endpoints/{endpoint_id}/start")
        actions = [op["action"] for op in started["operations"]]
        assert actions == ["timeline_unarchive", "start_compute"]
        clock.advance(1)
        assert (await api.get(path))["branch"]["current_state"] == "ready"
        clock.advance(1 + 300 + 1 + DAY)
        assert (await api.actions(project_id))[-1] == "timeline_archive"


@pytest.mark.parametrize("change", [{"protected": True}, {"default": True}])
async def test_a_protected_and_the_default_branch_are_not_archived(
    clock: ManualClock, change: dict[str, bool]
) -> None:
    intervals = only(archive_after_age=14 * DAY)
    async with (
        LocalControlPlane(clock=clock, intervals=intervals) as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        branch_id = (await api.branch(project_id))["branch"]["id"]
        path = f"/projects/{project_id}/branches/{branch_id}"
        if "protected" in change:
            await api.done("PATCH", path, {"branch": change})
        else:
            await api.done("POST", f"{path}/set_as_default")
        clock.advance(30 * DAY)
        archived = [
            op["branch_id"]
            for op in await since_creation(api, project_id)
            if op["action"] == "timeline_archive"
        ]
    assert branch_id not in archived


async def test_a_branch_of_a_recovered_project_is_archived_again(clock: ManualClock) -> None:
    intervals = only(archive_after_age=14 * DAY)
    async with (
        LocalControlPlane(clock=clock, intervals=intervals) as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        branch_id = (await api.branch(project_id))["branch"]["id"]
        await api.done("DELETE", f"/projects/{project_id}")
        await api.done("POST", f"/projects/{project_id}/recover")
        clock.advance(15 * DAY)
        last = (await api.operations(project_id))[-1]
    assert (last["action"], last["branch_id"]) == ("timeline_archive", branch_id)


async def test_a_branch_can_be_created_archived_and_made_the_default_again(
    api: Client, project_id: str
) -> None:
    created = await api.branch(project_id, archived=True)
    actions = [op["action"] for op in created["operations"]]
    assert actions == ["create_branch", "timeline_archive"]
    assert created["branch"]["pending_state"] == "archived"
    path = f"/projects/{project_id}/branches/{created['branch']['id']}/set_as_default"
    changed = await api.done("POST", path)
    assert [op["action"] for op in changed["operations"]] == ["timeline_unarchive"]


async def test_a_branch_is_deleted_when_it_expires(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await api.branch(project_id, compute=True, expires_at="2026-01-01T00:01:00Z")
    clock.advance(59)
    path = f"/projects/{project_id}/branches/{created['branch']['id']}"
    assert (await api.send("GET", path)).status == 200
    clock.advance(9)
    assert (await api.send("GET", path)).status == 404
    assert (await seen(api, project_id))[2:] == [
        ("suspend_compute", "2026-01-01T00:01:00Z"),
        ("delete_timeline", "2026-01-01T00:01:00Z"),
    ]


async def test_a_branch_that_is_needed_does_not_expire(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id = (await api.branch(project_id, expires_at="2026-01-01T00:01:00Z"))["branch"]["id"]
    await api.branch(project_id, parent_id=branch_id)
    clock.advance(61)
    branch = (await api.get(f"/projects/{project_id}/branches/{branch_id}"))["branch"]
    assert "expires_at" not in branch


async def test_the_plane_does_nothing_by_itself_where_told_not_to(clock: ManualClock) -> None:
    async with (
        LocalControlPlane(clock=clock, intervals=NEVER) as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        clock.advance(365 * DAY)
        assert await seen(api, project_id) == []


async def test_what_was_due_is_not_done_where_the_next_start_says_never(
    clock: ManualClock, tmp_path: Path
) -> None:
    data = tmp_path / "plane.db"
    async with (
        LocalControlPlane(data=data, clock=clock) as control_plane,
        Client(control_plane) as api,
    ):
        key = api.key
        project_id = (await api.project())["project"]["id"]
        await api.branch(project_id)
        before = await api.actions(project_id)
    clock.advance(365 * DAY)
    async with (
        LocalControlPlane(data=data, clock=clock, intervals=NEVER) as control_plane,
        Client(control_plane, key) as api,
    ):
        assert await api.actions(project_id) == before


async def test_a_deleted_project_does_nothing_more(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.done("DELETE", f"/projects/{project_id}")
    clock.advance(60 * DAY)
    assert [action for action, _ in await seen(api, project_id)] == ["delete_tenant"]


async def test_what_fell_due_together_keeps_the_order_of_its_times(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(10 * DAY)
    found = await since_creation(api, project_id)
    times = [op["created_at"] for op in found]
    assert times == sorted(times)
    assert {op["action"] for op in found} == {
        *("suspend_compute", "check_availability", "tenant_detach", "tenant_reattach")
    }


@pytest.mark.parametrize(
    "intervals",
    [{"check_availability_every": 0}, {"suspend_after": -1}, {"archive_after_idle": -1}],
)
async def test_intervals_make_sense(intervals: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"at least|0 or more"):
        BackgroundIntervals(**intervals)


async def test_of_many_missed_checks_the_last_are_made_up_for(clock: ManualClock) -> None:
    intervals = only(check_availability_every=1.0)
    async with (
        LocalControlPlane(clock=clock, intervals=intervals) as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        clock.advance(6 * HOUR)
        checks = [at for _, at in await seen(api, project_id)]
        assert (len(checks), checks[-1]) == (100, "2026-01-01T06:00:00Z")
        clock.advance(1)
        assert len(await seen(api, project_id)) == 101


def test_what_falls_due_first_is_found_without_sorting() -> None:
    schema = resources.files("neonctl_async.local.storage").joinpath("schema.sql").read_text()
    query = f"EXPLAIN QUERY PLAN SELECT * FROM due_events {background.EARLIEST}"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        plan = [step for *_, step in connection.execute(query, ("project", 0))]
    assert [step for step in plan if step.startswith("SCAN") or "TEMP B-TREE" in step] == []
