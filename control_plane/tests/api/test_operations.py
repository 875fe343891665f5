"""Listing and reading operations: sections 2.3 and 4.3 to 4.5 of the specification."""

from urllib.parse import quote

import pytest

from control_plane.tests.client import Client, actions_of
from neonctl_local import Durations, ManualClock
from neonctl_local.settings import ACTIONS

DAY = 86_400

FIELDS = {
    *("id", "project_id", "branch_id", "action", "status", "failures_count"),
    *("created_at", "updated_at", "total_duration_ms"),
}


@pytest.mark.fact("operations-1")
async def test_create_branch_response_contains_its_two_operations(
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


async def test_operation_of_a_response_can_be_read_by_id(api: Client, project_id: str) -> None:
    announced = (await api.branch(project_id))["operations"][0]
    read = await api.get(f"/projects/{project_id}/operations/{announced['id']}")
    assert read == {"operation": announced}


async def test_second_operation_starts_when_the_first_has_finished(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await api.branch(project_id, compute=True)
    paths = [f"/projects/{project_id}/operations/{op['id']}" for op in created["operations"]]
    statuses: list[list[str]] = []
    for _ in range(5):
        statuses.append([(await api.get(path))["operation"]["status"] for path in paths])
        clock.advance(0.5)
    assert statuses == [
        ["running", "scheduling"],
        ["running", "scheduling"],
        ["finished", "running"],
        ["finished", "running"],
        ["finished", "finished"],
    ]


@pytest.mark.control_plane(durations=Durations(default=0))
async def test_operation_without_duration_is_finished_in_the_response(api: Client) -> None:
    project = await api.project()
    assert [op["status"] for op in project["operations"]] == ["finished", "finished"]


@pytest.mark.control_plane(durations=Durations(default=1, scheduling=0.5))
async def test_first_operation_can_be_scheduling(api: Client, clock: ManualClock) -> None:
    project = await api.project()
    assert [op["status"] for op in project["operations"]] == ["scheduling", "scheduling"]
    clock.advance(0.5)
    operations = await api.operations(project["project"]["id"])
    assert [op["status"] for op in operations] == ["running", "scheduling"]


@pytest.mark.fact("operations-3")
async def test_operation_has_times_and_a_duration(
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


@pytest.mark.fact("operations-3")
async def test_list_is_newest_first_and_its_cursor_is_the_time_of_the_last_operation(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(3.25)
    await api.branch(project_id)
    page = await api.get(f"/projects/{project_id}/operations?limit=1")
    assert actions_of(page) == ["create_branch"]
    assert page["pagination"] == {"cursor": "2026-01-01T00:00:03.250000Z"}
    cursor = quote(page["pagination"]["cursor"], safe="")
    rest = await api.get(f"/projects/{project_id}/operations?limit=10&cursor={cursor}")
    assert actions_of(rest) == ["start_compute", "create_timeline"]


@pytest.mark.fact("operations-2")
async def test_pages_skip_and_repeat_no_operation_despite_equal_times_and_inserts(
    api: Client, project_id: str
) -> None:
    # The clock stands still: every operation has the same time to the second, and the microsecond.
    for _ in range(4):
        await api.branch(project_id, compute=True)
    expected = [op["id"] for op in await api.operations(project_id)]
    listed_ids: list[str] = []
    cursor = ""
    for _ in range(9):
        page = await api.get(f"/projects/{project_id}/operations?limit=3{cursor}")
        if not page["operations"]:
            break
        listed_ids += [op["id"] for op in page["operations"]]
        cursor = "&cursor=" + quote(page["pagination"]["cursor"], safe="")
        await api.branch(project_id)
    assert listed_ids == expected[::-1]


async def test_last_page_is_empty_and_has_no_cursor(api: Client, project_id: str) -> None:
    last = await api.get(f"/projects/{project_id}/operations")
    cursor = quote(last["pagination"]["cursor"], safe="")
    page = await api.get(f"/projects/{project_id}/operations?cursor={cursor}")
    assert page == {"operations": []}


async def test_page_has_100_operations_by_default(api: Client, project_id: str) -> None:
    for _ in range(50):
        await api.branch(project_id, compute=True)
    path = f"/projects/{project_id}/operations"
    assert len((await api.get(path))["operations"]) == 100
    assert len((await api.get(f"{path}?limit=1000"))["operations"]) == 102


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", "1.5", ""])
async def test_limit_is_1_to_1000(api: Client, project_id: str, limit: str) -> None:
    await api.expect_error(400, "limit", "GET", f"/projects/{project_id}/operations?limit={limit}")


@pytest.mark.parametrize("cursor", ["x", "2026-01-01T00:00:00", "%00", "99999-01-01T00:00:00Z"])
async def test_invalid_cursor_is_400(api: Client, project_id: str, cursor: str) -> None:
    path = f"/projects/{project_id}/operations?cursor={cursor}"
    await api.expect_error(400, "cursor", "GET", path)


async def test_operation_of_another_project_is_404(api: Client, project_id: str) -> None:
    other = await api.project()
    operation_id = other["operations"][0]["id"]
    path = f"/projects/{project_id}/operations/{operation_id}"
    await api.expect_error(404, operation_id, "GET", path)


async def test_operation_id_is_found_in_upper_case(api: Client, project_id: str) -> None:
    operation = (await api.operations(project_id))[0]
    path = f"/projects/{project_id}/operations"
    read = await api.get(f"{path}/{operation['id'].upper()}")
    assert read == {"operation": operation}


@pytest.mark.fact("operations-2")
async def test_cursor_of_a_whole_second_has_a_fraction(api: Client, project_id: str) -> None:
    operations = f"/projects/{project_id}/operations"
    last = (await api.get(operations))["pagination"]["cursor"]
    assert last == "2026-01-01T00:00:00.000000Z"


async def test_operations_of_every_action_name_a_branch(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    main, project = await api.main_branch(project_id), f"/projects/{project_id}"
    branch = (await api.branch(project_id, archived=True))["branch"]["id"]
    snapshot = await api.request("POST", f"{project}/branches/{main['id']}/snapshot")
    changes = {"project": {"history_retention_seconds": 3600}}
    await api.request("PATCH", project, changes)
    clock.advance(60)
    await api.request("DELETE", f"{project}/snapshots/{snapshot['snapshot']['id']}")
    await api.request("POST", f"{project}/branches/{branch}/set_as_default")
    for days in (1, 30):
        clock.advance(days * DAY)
        await api.get(project)
    await api.add_database(f"{project}/branches/{main['id']}", "orders")
    await api.request("DELETE", project)
    await api.request("POST", f"{project}/recover")
    operations = await api.operations(project_id)
    only_of_real_databases = {"sync_dbs_and_roles_from_compute"}
    actions = {operation["action"] for operation in operations}
    assert actions == ACTIONS - only_of_real_databases
    named = {operation["action"]: operation.get("branch_id") for operation in operations}
    assert None not in named.values()
    assert named["apply_storage_config"] == named["delete_timeline"] == main["id"]
    assert named["delete_tenant"] == named["tenant_attach"] == branch, "the default branch"
