"""The expiry of branches: which branches may have one, and its limits."""

from typing import Any

import pytest

from control_plane.tests.client import Client, branch_path_of
from neonctl_local import ManualClock

WEEK = "2026-01-08T00:00:00Z"
EXPIRING = {"branch": {"expires_at": WEEK}}


@pytest.mark.fact("expiration-5")
async def test_branch_expires_within_30_days(api: Client, project_id: str) -> None:
    await api.branch(project_id, expires_at="2026-01-31T00:00:00Z")
    path = branch_path_of(await api.branch(project_id))
    too_late = {"branch": {"expires_at": "2026-01-31T00:00:01Z"}}
    await api.expect_error(400, "2026-01-31T00:00:00Z", "PATCH", path, too_late)
    await api.expect_error(400, "30 days", "POST", f"/projects/{project_id}/branches", too_late)


@pytest.mark.fact("expiration-1", "expiration-7", "expiration-8")
async def test_record_has_the_time_from_setting_to_expiry(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await api.branch(project_id)
    path = branch_path_of(created)
    assert not created["branch"].keys() & {"expires_at", "ttl_interval_seconds"}
    clock.advance(86400)
    changed = (await api.request("PATCH", path, EXPIRING))["branch"]
    assert (changed["expires_at"], changed["ttl_interval_seconds"]) == (WEEK, 6 * 86400)
    changed = (await api.request("PATCH", path, {"branch": {"name": "new"}}))["branch"]
    assert (changed["expires_at"], changed["ttl_interval_seconds"]) == (WEEK, 6 * 86400)
    changed = (await api.request("PATCH", path, {"branch": {"expires_at": None}}))["branch"]
    assert not changed.keys() & {"expires_at", "ttl_interval_seconds"}


@pytest.mark.fact("expiration-2", "expiration-3", "expiration-4")
@pytest.mark.parametrize(
    "time",
    ["2026-01-02T00:00:00", "2026-01-02T00:00:00Z+01:00", "2025-12-31T23:59:59Z"],
)
async def test_time_without_one_zone_or_in_the_past_is_refused(
    api: Client, project_id: str, time: str
) -> None:
    body = {"branch": {"expires_at": time}}
    await api.expect_error(400, "expires_at", "POST", f"/projects/{project_id}/branches", body)


@pytest.mark.fact("expiration-6")
async def test_expiry_is_shown_in_whole_seconds(api: Client, project_id: str) -> None:
    created = await api.branch(project_id, expires_at="2026-01-08T00:00:00.75Z")
    assert created["branch"]["expires_at"] == WEEK


@pytest.mark.fact("expiration-9", "expiration-10")
async def test_protected_branch_has_no_expiry(api: Client, project_id: str) -> None:
    both = {"branch": {"expires_at": WEEK, "protected": True}}
    await api.expect_error(422, "protected", "POST", f"/projects/{project_id}/branches", both)
    path = branch_path_of(await api.branch(project_id, expires_at=WEEK))
    protected: dict[str, Any] = {"branch": {"protected": True}}
    await api.expect_error(422, "to null first", "PATCH", path, protected)
    protected["branch"]["expires_at"] = None
    await api.request("PATCH", path, protected)
    await api.expect_error(422, "protected", "PATCH", path, EXPIRING)


@pytest.mark.fact("expiration-11", "expiration-12")
async def test_default_branch_has_no_expiry(api: Client, project_id: str) -> None:
    path = branch_path_of(await api.branch(project_id, expires_at=WEEK))
    await api.expect_error(422, "default", "POST", f"{path}/set_as_default")
    await api.request("PATCH", path, {"branch": {"expires_at": None}})
    await api.request("POST", f"{path}/set_as_default")
    await api.expect_error(422, "default", "PATCH", path, EXPIRING)


@pytest.mark.fact("expiration-13", "expiration-14")
async def test_branch_with_children_has_no_expiry(api: Client, project_id: str) -> None:
    parent = await api.branch(project_id)
    path, parent_id = branch_path_of(parent), parent["branch"]["id"]
    child = branch_path_of(await api.branch(project_id, parent_id=parent_id))
    await api.expect_error(422, "children", "PATCH", path, EXPIRING)
    await api.request("DELETE", child)
    await api.request("PATCH", path, EXPIRING)
    body = {"branch": {"parent_id": parent_id}}
    await api.expect_error(422, "to null first", "POST", f"/projects/{project_id}/branches", body)
    other = branch_path_of(await api.branch(project_id))
    restore = {"source_branch_id": parent_id}
    await api.expect_error(422, "children", "POST", f"{other}/restore", restore)


@pytest.mark.fact("expiration-17")
async def test_branch_with_a_data_api_has_no_expiry(api: Client, project_id: str) -> None:
    path = branch_path_of(await api.branch(project_id, expires_at=WEEK))
    await api.expect_error(422, "Data API", "POST", f"{path}/data-api/neondb", {})
    await api.request("PATCH", path, {"branch": {"expires_at": None}})
    await api.request("POST", f"{path}/data-api/neondb", {})
    await api.expect_error(422, "Data API", "PATCH", path, EXPIRING)


@pytest.mark.fact("expiration-15")
async def test_reset_starts_the_interval_again(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await api.branch(project_id, expires_at="2026-01-02T00:00:00Z")
    clock.advance(3600)
    reset = {"source_branch_id": created["branch"]["parent_id"]}
    branch = (await api.request("POST", f"{branch_path_of(created)}/restore", reset))["branch"]
    assert branch["expires_at"] == "2026-01-02T01:00:00Z"
    assert branch["ttl_interval_seconds"] == 86400
