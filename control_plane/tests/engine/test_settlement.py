"""The end of operations with real work, and the states that wait for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.tests.driven import DrivenControlPlane, DrivenProject
from neonctl_local import Durations
from neonctl_local.clock import SECOND
from neonctl_local.engine import lifecycle, operations, settlement
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.storage.tables import NOT_STARTED, Endpoint, Operation, Snapshot


def statuses(plane: DrivenControlPlane, project: DrivenProject, last: int) -> list[str]:
    """Return the statuses of the last operations of a project."""
    return [operation["status"] for operation in plane.operations(project.id)[-last:]]


def test_operation_runs_until_its_work_is_done() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        project.branch()
        plane.clock.advance(120)
        assert statuses(plane, project, 1) == ["running"]
        (copy,) = plane.ready()
        plane.finish(copy)
        assert statuses(plane, project, 1) == ["finished"]
        settled = plane.operations(project.id)[-1]
        assert settled["updated_at"] == "2026-01-01T00:02:03Z"
        assert settled["total_duration_ms"] == 120_000


def test_planned_duration_is_the_least() -> None:
    with DrivenControlPlane(durations=Durations(default=10)) as plane:
        project = DrivenProject(plane)
        project.branch()
        plane.finish(*plane.ready())
        assert statuses(plane, project, 1) == ["running"]
        plane.clock.advance(9.9)
        assert statuses(plane, project, 1) == ["running"]
        plane.clock.advance(0.1)
        assert statuses(plane, project, 1) == ["finished"]


def test_second_operation_of_a_request_starts_after_the_first() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        created = project.branch(compute=True)
        assert [item["status"] for item in created["operations"]] == ["running", "scheduling"]
        plane.clock.advance(60)
        (copy,) = plane.ready()
        plane.finish(copy)
        (start,) = plane.ready()
        assert start.starts_at == plane.now
        assert statuses(plane, project, 2) == ["finished", "running"]
        plane.clock.advance(60)
        plane.finish(start)
        assert statuses(plane, project, 2) == ["finished", "finished"]


def test_second_operation_waits_for_the_planned_end_of_the_first() -> None:
    with DrivenControlPlane(durations=Durations(default=10)) as plane:
        project = DrivenProject(plane)
        project.branch(compute=True)
        plane.finish(*plane.ready())
        assert plane.ready() == []
        assert plane.next_start() == plane.now + 10 * SECOND
        plane.clock.advance(10)
        assert [operation.action for operation in plane.ready()] == ["start_compute"]
        assert plane.next_start() is None


def test_failed_work_fails_the_operation_with_its_reason() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        created = project.branch(compute=True)
        plane.clock.advance(5)
        plane.finish(*plane.ready(), error="no space left on device")
        first, second = plane.operations(project.id)[-2:]
        assert (first["status"], first["failures_count"]) == ("failed", 1)
        assert first["error"] == "no space left on device"
        assert (second["status"], second["failures_count"]) == ("failed", 0)
        assert second["error"] == NOT_STARTED
        assert plane.ready() == []
        branch = plane.request("GET", f"{project.path}/branches/{created['branch']['id']}")
        assert branch["branch"]["current_state"] == "init"
        endpoint = plane.request("GET", f"{project.path}/endpoints")["endpoints"][1]
        assert (endpoint["current_state"], endpoint.get("pending_state")) == ("idle", None)


def test_failure_is_shown_at_the_planned_end() -> None:
    with DrivenControlPlane(durations=Durations(default=10)) as plane:
        project = DrivenProject(plane)
        project.branch()
        plane.finish(*plane.ready(), error="no space left on device")
        assert statuses(plane, project, 1) == ["running"]
        plane.clock.advance(10)
        assert statuses(plane, project, 1) == ["failed"]


def test_planned_failure_drops_the_work() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.run(operations.fail_next, "create_branch", Failure(error="as planned"), 1)
        project.branch(compute=True)
        assert plane.ready() == []
        plane.clock.advance(2)
        assert statuses(plane, project, 2) == ["failed", "failed"]


def test_planned_failure_of_a_later_operation_shows_after_the_real_work() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.run(operations.fail_next, "start_compute", Failure(error="as planned"), 1)
        project.branch(compute=True)
        plane.clock.advance(60)
        assert statuses(plane, project, 2) == ["running", "scheduling"]
        plane.finish(*plane.ready())
        assert plane.ready() == []
        assert statuses(plane, project, 2) == ["finished", "running"]
        plane.clock.advance(1)
        failed = plane.operations(project.id)[-1]
        assert (failed["status"], failed["error"]) == ("failed", "as planned")


def test_planned_retry_is_shown_before_the_operation_finishes() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.run(operations.fail_next, "create_branch", Failure(retry_after=4), 1)
        project.branch()
        plane.finish(*plane.ready())
        seen: list[str] = []
        for _ in range(7):
            seen += statuses(plane, project, 1)
            plane.clock.advance(1)
        failed = ["failed"] * 4
        assert seen == ["running", *failed, "running", "finished"]


def test_second_settlement_has_no_effect() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        project.branch()
        (copy,) = plane.ready()
        plane.finish(copy)
        before = plane.rows(Operation)
        plane.clock.advance(60)
        plane.finish(copy, error="too late")
        assert plane.rows(Operation) == before


def test_settlement_after_a_reset_has_no_effect() -> None:
    with DrivenControlPlane() as plane:
        plane.run(settlement.settle, "deleted", "the control plane was reset")
        assert plane.rows(Operation) == []


def test_operation_cannot_settle_before_it_starts() -> None:
    with DrivenControlPlane() as plane:
        DrivenProject(plane).branch(compute=True)
        start = plane.rows(Operation, "ORDER BY rowid DESC LIMIT 1")[0]
        with pytest.raises(ValueError, match="has not started"):
            plane.finish(start)


def test_compute_is_active_when_its_server_runs() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.request("POST", f"{project.endpoint_path}/suspend")
        plane.clock.advance(60)
        assert project.state() == "active"
        plane.finish(*plane.ready())
        assert project.state() == "idle"
        shown = plane.request("POST", f"{project.endpoint_path}/start")["endpoint"]
        assert (shown["current_state"], shown["pending_state"]) == ("idle", "active")
        plane.clock.advance(60)
        plane.finish(*plane.ready())
        endpoint = plane.request("GET", project.endpoint_path)["endpoint"]
        assert endpoint["current_state"] == "active"
        assert endpoint["started_at"] == "2026-01-01T00:02:03Z"
        assert endpoint["suspended_at"] == "2026-01-01T00:01:03Z"


def test_compute_that_fails_to_suspend_stays_active() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.request("POST", f"{project.endpoint_path}/suspend")
        plane.clock.advance(60)
        plane.finish(*plane.ready(), error="the server does not stop")
        assert project.state() == "active"
        (row,) = plane.rows(Endpoint)
        assert row.running_on == project.main
        assert row.idle_at == plane.now + 300 * SECOND


def test_compute_that_fails_to_start_is_idle() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.request("POST", f"{project.endpoint_path}/suspend")
        plane.work_off()
        plane.request("POST", f"{project.endpoint_path}/start")
        plane.clock.advance(60)
        plane.finish(*plane.ready(), error="the server ended")
        assert project.state() == "idle"
        (row,) = plane.rows(Endpoint)
        assert (row.running_on, row.idle_at, row.state_operation) == (None, None, None)


def test_restart_records_both_times_and_the_server() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.request("POST", f"{project.endpoint_path}/restart")
        plane.clock.advance(60)
        plane.finish(*plane.ready())
        (row,) = plane.rows(Endpoint)
        assert (row.suspended_at, row.running_on) == (plane.now, None)
        plane.clock.advance(60)
        plane.finish(*plane.ready())
        (row,) = plane.rows(Endpoint)
        assert (row.started_at, row.running_on) == (plane.now, project.main)


def test_applied_settings_keep_the_compute_up() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.request("PATCH", project.endpoint_path, {"endpoint": {"name": "primary"}})
        plane.clock.advance(3600)
        assert project.state() == "active"
        plane.finish(*plane.ready())
        (row,) = plane.rows(Endpoint)
        assert row.idle_at == plane.now + 300 * SECOND


def test_snapshot_is_taken_unless_its_copy_fails() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        for error in (None, "no space left on device"):
            plane.request("POST", f"{project.main_path}/snapshot")
            plane.finish(*plane.ready(), error=error)
        taken = [snapshot.taken for snapshot in plane.rows(Snapshot, "ORDER BY rowid")]
        assert taken == [True, False]


def test_branch_that_is_created_archived_is_archived_after_its_copy() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        created = project.branch(archived=True)
        path = f"{project.path}/branches/{created['branch']['id']}"
        assert created["branch"]["current_state"] == "init"
        plane.clock.advance(60)
        plane.finish(*plane.ready())
        plane.clock.advance(1)
        assert plane.request("GET", path)["branch"]["current_state"] == "archived"


def test_open_operations_lock_their_project() -> None:
    with DrivenControlPlane(lock="project") as plane:
        project = DrivenProject(plane)
        project.branch()
        plane.clock.advance(60)
        assert plane.refused("POST", f"{project.path}/branches").status == 423
        plane.finish(*plane.ready())
        project.branch()


def test_emulated_operations_have_no_work_and_known_ends() -> None:
    with DrivenControlPlane(postgres=None) as plane:
        project = DrivenProject(plane)
        project.branch(compute=True)
        plane.request("POST", f"{project.main_path}/snapshot")
        rows = plane.rows(Operation)
        assert all(row.work is None and row.after_id is None for row in rows)
        assert not any(row.is_open for row in rows)
        assert {row.running_on for row in plane.rows(Endpoint)} == {None}


SECONDS = st.floats(min_value=0, max_value=100)
FAILURES = st.builds(Failure, retry_after=SECONDS)


@given(
    st.builds(Durations, default=SECONDS, scheduling=st.floats(min_value=0, max_value=1)),
    st.none() | FAILURES,
    st.integers(min_value=0, max_value=300 * SECOND),
    st.none() | st.just("disk full"),
)
def test_operation_never_ends_before_its_planned_end(
    durations: Durations, failure: Failure | None, now: int, error: str | None
) -> None:
    planned = lifecycle.plan("create_branch", 0, durations, failure=failure)
    duration = round(durations.default * SECOND)
    settled = lifecycle.with_end(lifecycle.without_end(planned), duration, now, error)
    assert settled.settles_at == max(planned.settles_at, now)
    assert settled.succeeds == (error is None)
    if now <= planned.settles_at and error is None:
        assert settled == planned
