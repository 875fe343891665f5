"""Consumption of projects and branches, by timeframe."""

from urllib.parse import urlencode

import pytest

from control_plane.tests.client import Client
from control_plane.tests.keys import organization_key, project_key
from neonctl_local import BackgroundIntervals, ManualClock
from neonctl_local.api.billing import metrics

DAY = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "granularity": "hourly"}
ALL = ",".join(metrics.OF_BRANCHES)


def path_of(api: Client, kind: str, **changes: str) -> str:
    """Return the path of a list of a day. An empty value leaves a parameter out."""
    query = DAY | {"org_id": api.control_plane.org_id}
    if kind != "projects":
        query["metrics"] = ALL
    chosen = {name: value for name, value in (query | changes).items() if value}
    return f"/consumption_history/{kind}?{urlencode(chosen)}"


def values(period: dict[str, list[dict[str, list[dict[str, object]]]]], name: str) -> list[object]:
    """Return the values of a metric, one for each timeframe."""
    return [
        metric["value"]
        for frame in period["consumption"]
        for metric in frame["metrics"]
        if metric["metric_name"] == name
    ]


@pytest.mark.control_plane(intervals=BackgroundIntervals(suspend_after=None))
async def test_time_of_computes_follows_from_their_operations(
    api: Client, clock: ManualClock
) -> None:
    created = await api.project(autoscaling_limit_min_cu=0.5, autoscaling_limit_max_cu=2)
    project_id = created["project"]["id"]
    endpoint = f"/projects/{project_id}/endpoints/{created['endpoints'][0]['id']}"
    clock.advance(2)  # the compute runs from here on
    clock.advance(599)
    await api.request("POST", f"{endpoint}/suspend")
    clock.advance(3600)
    [project] = (await api.get(path_of(api, "v2/projects")))["projects"]
    [period] = project["periods"]
    assert period["period_start"] == "2026-01-01T00:00:00Z"
    assert "period_end" not in period
    assert values(period, "compute_unit_seconds") == [300, 0]
    page = await api.get(path_of(api, "v2/branches", project_ids=project_id))
    [branch] = page["branches"]
    assert branch["branch_id"] == created["branch"]["id"]
    assert values(branch["periods"][0], "compute_unit_seconds") == [300, 0]
    [legacy] = (await api.get(path_of(api, "projects")))["projects"]
    assert legacy["periods"][0]["consumption"][0] == {
        "timeframe_start": "2026-01-01T00:00:00Z",
        "timeframe_end": "2026-01-01T01:00:00Z",
        "active_time_seconds": 600,
        "compute_time_seconds": 300,
        "written_data_bytes": 0,
        "synthetic_storage_size_bytes": 0,
    }


async def test_compute_that_is_due_to_be_suspended_counts_until_then(
    api: Client, clock: ManualClock
) -> None:
    project_id = (await api.project())["project"]["id"]
    clock.advance(3600)
    [before] = (await api.get(path_of(api, "v2/projects")))["projects"]
    assert values(before["periods"][0], "compute_unit_seconds") == [300 // 4]
    await api.get(f"/projects/{project_id}")  # does the background work
    [after] = (await api.get(path_of(api, "v2/projects")))["projects"]
    assert values(after["periods"][0], "compute_unit_seconds")[0] == pytest.approx(75, abs=1)


async def test_compute_that_runs_all_the_time_is_counted_in_each_timeframe(
    api: Client, clock: ManualClock
) -> None:
    created = await api.project()
    endpoint = f"/projects/{created['project']['id']}/endpoints/{created['endpoints'][0]['id']}"
    await api.request("PATCH", endpoint, {"endpoint": {"suspend_timeout_seconds": -1}})
    clock.advance(2 * 24 * 3600)
    times = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-03T00:00:00Z", "granularity": "daily"}
    [project] = (await api.get(path_of(api, "v2/projects", **times)))["projects"]
    assert values(project["periods"][0], "compute_unit_seconds") == [24 * 3600 // 4]


async def test_root_branch_is_no_extra_branch(api: Client, clock: ManualClock) -> None:
    project_id = (await api.project())["project"]["id"]
    clock.advance(10)
    await api.branch(project_id)
    clock.advance(2 * 3600)
    path = path_of(api, "v2/projects", metrics="extra_branches_month")
    [project] = (await api.get(path))["projects"]
    assert values(project["periods"][0], "extra_branches_month") == [0, 1, 0]


async def test_periods_are_months_and_start_with_the_project(
    api: Client, clock: ManualClock
) -> None:
    clock.advance(30 * 24 * 3600)
    await api.project()
    clock.advance(2 * 24 * 3600)
    query = {"from": "2026-01-20T00:00:00Z", "to": "2026-02-03T00:00:00Z", "granularity": "daily"}
    [project] = (await api.get(path_of(api, "v2/projects", **query)))["projects"]
    assert [
        (period["period_start"], period.get("period_end"), len(period["consumption"]))
        for period in project["periods"]
    ] == [
        ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", 1),
        ("2026-02-01T00:00:00Z", None, 1),
    ]
    ids = [period["period_id"] for period in project["periods"]]
    assert len(set(ids)) == 2
    [again] = (await api.get(path_of(api, "v2/projects", **query)))["projects"]
    assert [period["period_id"] for period in again["periods"]] == ids


@pytest.mark.fact("consumption-5")
async def test_projects_are_listed_in_pages_newest_first(api: Client, clock: ManualClock) -> None:
    created: list[str] = []
    for _ in range(3):
        created.append((await api.project())["project"]["id"])
        clock.advance(1)
    first = await api.get(path_of(api, "v2/projects", limit="2"))
    cursor = first["pagination"]["cursor"]
    assert cursor == created[1]
    second = await api.get(path_of(api, "v2/projects", limit="2", cursor=cursor))
    found = [project["project_id"] for page in (first, second) for project in page["projects"]]
    assert found == created[::-1]
    cursor = second["pagination"]["cursor"]
    last = await api.get(path_of(api, "v2/projects", cursor=cursor))
    assert last == {"projects": []}


async def test_branches_are_listed_in_pages_in_order_of_their_ids(
    api: Client, clock: ManualClock
) -> None:
    projects = [(await api.project())["project"]["id"] for _ in range(2)]
    for project_id in projects:
        await api.branch(project_id)
    clock.advance(60)
    query = {"project_ids": ",".join(projects), "limit": "3"}
    first = await api.get(path_of(api, "v2/branches", **query))
    cursor = first["pagination"]["cursor"]
    second = await api.get(path_of(api, "v2/branches", **query, cursor=cursor))
    found = [
        (branch["project_id"], branch["branch_id"])
        for page in (first, second)
        for branch in page["branches"]
    ]
    assert len(found) == 4
    assert found == sorted(found)
    branch_ids = f"{found[0][1]},{found[3][1]}"
    chosen = await api.get(path_of(api, "v2/branches", **query, branch_ids=branch_ids))
    assert [branch["branch_id"] for branch in chosen["branches"]] == branch_ids.split(",")


@pytest.mark.fact("consumption-1")
async def test_ids_are_sent_in_one_parameter_or_in_repeated_ones(api: Client) -> None:
    ids = [(await api.project())["project"]["id"] for _ in range(3)]
    path = path_of(api, "v2/projects")
    for query in (f"project_ids={ids[0]},{ids[1]}", f"project_ids={ids[0]}&project_ids={ids[1]}"):
        page = await api.get(f"{path}&{query}")
        assert {project["project_id"] for project in page["projects"]} == {*ids[:2]}
    page = await api.get(f"{path}&project_ids={ids[0]},unknown")
    assert [project["project_id"] for project in page["projects"]] == [ids[0]]


async def test_legacy_metrics_are_added_on_request(api: Client, clock: ManualClock) -> None:
    await api.project()
    clock.advance(60)
    for query, added in (
        ({}, set[str]()),
        ({"metrics": "logical_size_bytes"}, {"logical_size_bytes"}),
        ({"include_v1_metrics": "true"}, {"data_storage_bytes_hour"}),
        (
            {"metrics": "logical_size_bytes_hour", "include_v1_metrics": "true"},
            {"logical_size_bytes_hour"},
        ),
    ):
        [project] = (await api.get(path_of(api, "projects", **query)))["projects"]
        [frame] = project["periods"][0]["consumption"]
        assert frame.keys() - {"timeframe_start", "timeframe_end"} == {*metrics.ALWAYS} | added


async def test_projects_of_the_account_are_listed_without_an_organization(api: Client) -> None:
    own = (await api.request("POST", "/projects", {"project": {}}))["project"]["id"]
    of_organization = (await api.project())["project"]["id"]
    path = path_of(api, "projects", org_id="")
    _, organization_token = await organization_key(api)
    _, project_token = await project_key(api, of_organization)
    for key, expected in (
        (api.key, own),
        (organization_token, of_organization),
        (project_token, of_organization),
    ):
        [project] = (await api.get(path, key=key))["projects"]
        assert project["project_id"] == expected


async def test_consumption_of_an_organization_needs_access_to_it(api: Client) -> None:
    project_id = (await api.project())["project"]["id"]
    _, project_token = await project_key(api, project_id)
    stranger = await api.new_user_key("stranger@example.com")
    for kind in ("projects", "v2/projects", "v2/branches"):
        path = path_of(api, kind, project_ids=project_id)
        assert (await api.send("GET", path, key=stranger)).status == 404
        assert (await api.send("GET", path, key=project_token)).status == 403


@pytest.mark.fact("consumption-1")
@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("projects", {"from": ""}, "from"),
        ("projects", {"to": "yesterday"}, "to"),
        ("projects", {"granularity": ""}, "granularity"),
        ("projects", {"granularity": "weekly"}, "granularity"),
        ("projects", {"limit": "101"}, "limit"),
        ("projects", {"metrics": "compute_unit_seconds"}, "metrics"),
        ("projects", {"cursor": "x"}, "cursor"),
        ("v2/projects", {"org_id": ""}, "org_id"),
        ("v2/projects", {"metrics": ""}, "metrics"),
        ("v2/projects", {"project_ids": ",".join(["a"] * 101)}, "project_ids"),
        ("v2/branches", {"project_ids": ""}, "project_ids"),
        ("v2/branches", {"project_ids": "a", "metrics": "extra_branches_month"}, "metrics"),
        ("v2/branches", {"project_ids": "a", "limit": "1001"}, "limit"),
        ("v2/branches", {"project_ids": "a", "cursor": "x"}, "cursor"),
    ],
)
async def test_error_for_an_invalid_parameter_names_it(
    api: Client, kind: str, changes: dict[str, str], words: str
) -> None:
    await api.expect_error(400, words, "GET", path_of(api, kind, **changes))


async def test_range_longer_ago_than_the_history_is_refused(api: Client) -> None:
    path = path_of(api, "v2/projects", **{"from": "2025-12-01T00:00:00Z"})
    await api.expect_error(406, "168 hours", "GET", path)


@pytest.mark.fact("consumption-3", "consumption-4", "consumption-7")
async def test_consumption_is_listed_in_order_of_time_and_starts_no_compute(
    api: Client, clock: ManualClock
) -> None:
    created = [await api.project() for _ in range(11)]
    clock.advance(40 * 86400)
    changes = {"to": "2026-02-10T00:00:00Z", "granularity": "daily"}
    page = await api.get(path_of(api, "v2/projects", **changes))
    assert len(page["projects"]) == 10
    periods = page["projects"][0]["periods"]
    starts = [frame["timeframe_start"] for one in periods for frame in one["consumption"]]
    assert [one["period_start"] for one in periods] == [
        *("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")
    ]
    assert starts == sorted(starts)
    for limit in ("0", "101"):
        path = path_of(api, "v2/projects", limit=limit, **changes)
        await api.expect_error(400, "limit", "GET", path)
    endpoints = f"/projects/{created[0]['project']['id']}/endpoints"
    assert (await api.get(endpoints))["endpoints"][0]["current_state"] == "idle"
