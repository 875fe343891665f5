"""The state of computes, and their configuration."""

from types import SimpleNamespace
from typing import cast

import pytest

from control_plane.tests.client import Client, actions_of, branch_path_of
from control_plane.tests.computes import compute, compute_state, run_action
from control_plane.tests.driven import POSTGRES, DrivenControlPlane, DrivenProject
from neonctl_local import ManualClock
from neonctl_local.engine import operations
from neonctl_local.engine.computes import max_connections
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.settings import PostgresRules
from neonctl_local.storage.tables import Endpoint


async def test_compute_is_active_when_start_compute_has_finished(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    assert await compute_state(api, project_id) == ("init", "active")
    clock.advance(1.9)
    assert await compute_state(api, project_id) == ("init", "active")
    clock.advance(0.1)
    assert await compute_state(api, project_id) == ("active", None)


async def test_compute_that_fails_to_start_is_idle(api: Client, clock: ManualClock) -> None:
    await api.control_plane.fail_next("start_compute")
    project_id = (await api.project())["project"]["id"]
    clock.advance(9)
    assert await compute_state(api, project_id) == ("idle", None)
    assert await run_action(api, project_id, "start") == ["start_compute"]
    clock.advance(1)
    assert await compute_state(api, project_id) == ("active", None)


async def test_compute_that_fails_to_suspend_stays_active(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    await api.control_plane.fail_next("suspend_compute")
    await run_action(api, project_id, "suspend")
    clock.advance(9)
    assert await compute_state(api, project_id) == ("active", None)


@pytest.mark.parametrize("postgres", [None, POSTGRES])
@pytest.mark.parametrize("failing", ["suspend_compute", "create_branch", "start_compute"])
@pytest.mark.parametrize("request_", ["restart", "restore", "move"])
def test_compute_stays_active_only_if_its_suspension_before_a_failed_start_fails(
    request_: str, failing: str, postgres: PostgresRules | None
) -> None:
    with DrivenControlPlane(postgres=postgres) as plane:
        project = DrivenProject(plane)
        child = project.branch()["branch"]["id"]
        plane.work_off()
        plane.clock.advance(5)
        plane.run(operations.fail_next, failing, Failure(), 1)
        if request_ == "restart":
            plane.request("POST", f"{project.endpoint_path}/restart")
        elif request_ == "restore":
            body = {"source_branch_id": child, "preserve_under_name": "old"}
            plane.request("POST", f"{project.main_path}/restore", body)
        else:
            plane.request("PATCH", project.endpoint_path, {"endpoint": {"branch_id": child}})
        plane.work_off()
        plane.clock.advance(5)
        statuses = [each["status"] for each in plane.operations(project.id)[-3:]]
        is_started = "failed" not in statuses
        was_suspended = failing != "suspend_compute"
        is_active = is_started or (not was_suspended and request_ != "move")
        assert project.state() == ("active" if is_active else "idle")


@pytest.mark.fact("computes-1")
async def test_branch_has_at_most_one_read_write_compute(api: Client, project_id: str) -> None:
    branch_id = (await compute(api, project_id))["branch_id"]
    path = f"/projects/{project_id}/endpoints"
    for type_, status in (("read_write", 409), ("read_only", 201), ("read_only", 201)):
        body = {"endpoint": {"branch_id": branch_id, "type": type_}}
        assert (await api.send("POST", path, body)).status == status
    two = {"endpoints": [{"type": "read_write"}, {"type": "read_write"}]}
    assert (await api.send("POST", f"/projects/{project_id}/branches", two)).status == 409
    assert await api.get(f"/projects/{project_id}/branches/count") == {"count": 1}


async def test_idle_compute_is_started_before_apply_config(
    api: Client, clock: ManualClock, branch_path: str
) -> None:
    clock.advance(3600)
    created = await api.request("POST", f"{branch_path}/roles", {"role": {"name": "alex"}})
    assert actions_of(created) == ["start_compute", "apply_config"]


async def test_apply_config_runs_on_a_branch_without_a_compute(
    api: Client, project_id: str
) -> None:
    path = branch_path_of(await api.branch(project_id))
    created = await api.request("POST", f"{path}/roles", {"role": {"name": "alex"}})
    (operation,) = created["operations"]
    assert (operation["action"], "endpoint_id" in operation) == ("apply_config", False)


@pytest.mark.parametrize(
    ("minimum", "maximum", "connections"),
    [
        (0.25, 0.25, 104),
        (0.5, 0.5, 209),
        (1, 1, 419),
        (2, 2, 839),
        (0.25, 1, 419),
        (0.25, 2, 839),
        (0.25, 8, 839),
        (4, 4, 1000),
        (56, 56, 1000),
    ],
)
def test_size_of_a_compute_has_the_connections_of_neon_up_to_a_limit(
    minimum: float, maximum: float, connections: int
) -> None:
    size = SimpleNamespace(autoscaling_limit_min_cu=minimum, autoscaling_limit_max_cu=maximum)
    assert max_connections(cast("Endpoint", size)) == connections
