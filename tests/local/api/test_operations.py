"""Operations over the socket: sections 2.3, 3.2, 4.3, 4.4 and 4.5 of the specification."""

from urllib.parse import quote

import pytest

from neonctl_async.local import Durations, LocalControlPlane, ManualClock
from tests.local.client import Client

FIELDS = {
    *("id", "project_id", "branch_id", "action", "status", "failures_count"),
    *("created_at", "updated_at", "total_duration_ms"),
}


async def test_a_create_branch_request_announces_its_two_operations(
    api: Client, project_id: str
) -> None:
    created = await api.branch(project_id, compute=True)
    first, second = created["operations"]
    assert (first["action"], first["status"]) == ("create_branch", "running")
    assert (second["action"], second["status"]) == ("start_compute", "scheduling")
    assert set(first) == FIELDS
    assert set(second) == FIELDS | {"endpoint_id"}
    assert first["branch_id"] == second["branch_id"] == created["branch"]["id"]
    assert second["endpoint_id"] == created["endpoints"][0]["id"]


async def test_an_announced_operation_is_read_by_id(api: Client, project_id: str) -> None:
    announced = (await api.branch(project_id))["operations"][0]
    read = await api.get(f"/projects/{project_id}/operations/{announced['id']}")
    assert read == {"operation": announced}


async def test_statuses_go_by_the_clock_and_the_second_waits_for_the_first(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await api.branch(project_id, compute=True)
    paths = [f"/projects/{project_id}/operations/{op['id']}" for op in created["operations"]]
    seen: list[list[str]] = []
    for _ in range(5):
        seen.append([(await api.get(path))["operation"]["status"] for path in paths])
        clock.advance(0.5)
    assert seen == [
        ["running", "scheduling"],
        ["running", "scheduling"],
        ["finished", "running"],
        ["finished", "running"],
        ["finished", "finished"],
    ]


async def test_an_operation_may_be_final_in_the_answer_that_announces_it() -> None:
    async with (
        LocalControlPlane(durations=Durations(default=0)) as control_plane,
        Client(control_plane) as api,
    ):
        project = await api.project()
    assert [op["status"] for op in project["operations"]] == ["finished", "finished"]


async def test_a_first_operation_may_be_scheduling(clock: ManualClock) -> None:
    durations = Durations(default=1, scheduling=0.5)
    async with (
        LocalControlPlane(clock=clock, durations=durations) as control_plane,
        Client(control_plane) as api,
    ):
        project = await api.project()
        assert [op["status"] for op in project["operations"]] == ["scheduling", "scheduling"]
        clock.advance(0.5)
        operations = await api.operations(project["project"]["id"])
    assert [op["status"] for op in operations] == ["running", "scheduling"]


async def test_times_and_durations_are_kept(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(60)
    created = (await api.branch(project_id))["operations"][0]
    assert created["created_at"] == created["updated_at"] == "2026-01-01T00:01:00Z"
    assert created["total_duration_ms"] == 0
    clock.advance(9)
    settled = (await api.operations(project_id))[-1]
    assert settled["updated_at"] == "2026-01-01T00:01:01Z"
    assert settled["total_duration_ms"] == 1000


async def test_a_planned_failure_fails_and_what_follows_does_not_start(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("create_branch", error="no room")
    await api.branch(project_id, compute=True)
    clock.advance(5)
    first, second = (await api.operations(project_id))[-2:]
    assert (first["status"], first["failures_count"], first["error"]) == ("failed", 1, "no room")
    assert (second["status"], second["failures_count"]) == ("failed", 0)
    assert (await api.branch(project_id))["operations"][0]["failures_count"] == 0
    clock.advance(5)
    assert (await api.operations(project_id))[-1]["status"] == "finished"


async def test_planned_failures_report_how_often_they_fired(api: Client, project_id: str) -> None:
    await api.control_plane.fail_next("create_branch", times=2)
    await api.control_plane.fail_next("delete_timeline")
    for fired in (0, 1, 2, 2):
        planned = await api.control_plane.planned_failures()
        assert [(one.action, one.times, one.fired) for one in planned] == [
            ("create_branch", 2, fired),
            ("delete_timeline", 1, 0),
        ]
        await api.branch(project_id)


async def test_a_planned_failure_is_retried_where_asked(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("create_branch", retry_after=2.5)
    await api.branch(project_id)
    seen: list[tuple[str, str | None]] = []
    for seconds in (1, 2, 0.5, 1):
        clock.advance(seconds)
        operation = (await api.operations(project_id))[-1]
        seen.append((operation["status"], operation.get("retry_at")))
    assert seen == [
        ("failed", "2026-01-01T00:00:03.5Z"),
        ("failed", "2026-01-01T00:00:03.5Z"),
        ("running", None),
        ("finished", None),
    ]
    assert operation["failures_count"] == 1


async def test_a_refused_request_does_not_use_up_a_planned_failure(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("create_branch")
    taken = {"branch": {"name": "main"}}
    refused = await api.send("POST", f"/projects/{project_id}/branches", taken)
    assert refused.status == 409
    await api.branch(project_id)
    clock.advance(2)
    assert (await api.operations(project_id))[-1]["status"] == "failed"


@pytest.mark.parametrize("status", ["error", "cancelled", "skipped"])
async def test_another_final_status_can_be_planned(
    api: Client, clock: ManualClock, project_id: str, status: str
) -> None:
    await api.control_plane.fail_next("create_branch", status=status)
    await api.branch(project_id)
    clock.advance(2)
    assert (await api.operations(project_id))[-1]["status"] == status


async def test_the_list_is_newest_first_and_its_cursor_is_the_last_ones_time(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(3.25)
    await api.branch(project_id)
    page = await api.get(f"/projects/{project_id}/operations?limit=1")
    assert [op["action"] for op in page["operations"]] == ["create_branch"]
    assert page["pagination"] == {"cursor": "2026-01-01T00:00:03.25Z"}
    cursor = quote(page["pagination"]["cursor"], safe="")
    rest = await api.get(f"/projects/{project_id}/operations?limit=10&cursor={cursor}")
    assert [op["action"] for op in rest["operations"]] == ["start_compute", "create_timeline"]


async def test_pages_skip_and_repeat_nothing_under_ties_and_inserts(
    api: Client, project_id: str
) -> None:
    # The clock stands still: every operation has the same time to the second, and the microsecond.
    for _ in range(4):
        await api.branch(project_id, compute=True)
    expected = [op["id"] for op in await api.operations(project_id)]
    seen: list[str] = []
    cursor = ""
    for _ in range(9):
        page = await api.get(f"/projects/{project_id}/operations?limit=3{cursor}")
        if not page["operations"]:
            break
        seen += [op["id"] for op in page["operations"]]
        cursor = "&cursor=" + quote(page["pagination"]["cursor"], safe="")
        await api.branch(project_id)
    assert seen == expected[::-1]


async def test_the_end_is_an_empty_page_without_a_cursor(api: Client, project_id: str) -> None:
    last = await api.get(f"/projects/{project_id}/operations")
    cursor = quote(last["pagination"]["cursor"], safe="")
    page = await api.get(f"/projects/{project_id}/operations?cursor={cursor}")
    assert page == {"operations": []}


async def test_a_page_holds_100_operations_unless_told(api: Client, project_id: str) -> None:
    for _ in range(50):
        await api.branch(project_id, compute=True)
    path = f"/projects/{project_id}/operations"
    assert len((await api.get(path))["operations"]) == 100
    assert len((await api.get(f"{path}?limit=1000"))["operations"]) == 102


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", "1.5", ""])
async def test_a_limit_is_1_to_1000(api: Client, project_id: str, limit: str) -> None:
    reply = await api.send("GET", f"/projects/{project_id}/operations?limit={limit}")
    assert (reply.status, "limit" in reply.message) == (400, True)


@pytest.mark.parametrize("cursor", ["x", "2026-01-01T00:00:00", "%00", "99999-01-01T00:00:00Z"])
async def test_a_cursor_that_is_none_is_refused(api: Client, project_id: str, cursor: str) -> None:
    reply = await api.send("GET", f"/projects/{project_id}/operations?cursor={cursor}")
    assert (reply.status, "cursor" in reply.message) == (400, True)


async def test_an_operation_is_found_in_its_own_project_only(api: Client, project_id: str) -> None:
    other = await api.project()
    operation_id = other["operations"][0]["id"]
    reply = await api.send("GET", f"/projects/{project_id}/operations/{operation_id}")
    assert (reply.status, operation_id in reply.message) == (404, True)
