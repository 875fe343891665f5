"""The servers that run, and the suspension of their computes in time."""

from control_plane.tests.driven import DrivenControlPlane, DrivenProject
from neonctl_local.clock import SECOND
from neonctl_local.engine import databases, servers, watching
from neonctl_local.engine.work import SuspendCompute
from neonctl_local.settings import BackgroundIntervals
from neonctl_local.storage.tables import Endpoint


def test_snapshots_of_a_branch_are_newest_first_without_failed_and_deleted_ones() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        taken: list[str] = []
        for error in (None, None, "no space left on device", None):
            created = plane.request("POST", f"{project.main_path}/snapshot")
            taken.append(created["snapshot"]["id"])
            plane.finish(*plane.ready(), error=error)
            plane.clock.advance(1)
        plane.request("DELETE", f"{project.path}/snapshots/{taken[1]}")
        found = plane.run(servers.snapshots_of, project.main)
        assert [snapshot.id for snapshot in found] == [taken[3], taken[0]]


def test_suspension_of_a_server_is_that_of_its_first_idle_compute() -> None:
    with DrivenControlPlane(intervals=BackgroundIntervals(suspend_after=60)) as plane:
        project = DrivenProject(plane)
        (row,) = plane.rows(Endpoint)
        plane.clock.advance(10)
        spec = {"branch_id": project.main, "type": "read_only", "suspend_timeout_seconds": -1}
        plane.request("POST", f"{project.path}/endpoints", {"endpoint": spec})
        plane.work_off()
        assert plane.run(servers.suspensions) == {project.main: row.idle_at}
        plane.request("DELETE", project.endpoint_path)
        plane.work_off()
        assert plane.run(servers.suspensions) == {project.main: None}


def test_idle_computes_are_suspended_without_a_request() -> None:
    with DrivenControlPlane(intervals=BackgroundIntervals(suspend_after=60)) as plane:
        project = DrivenProject(plane)
        (row,) = plane.rows(Endpoint)
        assert row.idle_at is not None
        plane.clock.advance((row.idle_at - plane.now) / SECOND - 0.001)
        assert not plane.run(servers.suspend_due, plane.now)
        plane.clock.advance(0.001)
        assert plane.run(servers.suspend_due, plane.now)
        assert plane.works() == [SuspendCompute(project.main, project.endpoint)]
        assert not plane.run(servers.suspend_due, plane.now)


def test_request_does_not_suspend_an_idle_compute_whose_activity_was_not_checked() -> None:
    """A client may have begun a query since the last check."""
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.clock.advance(300)
        assert project.state() == "active"
        plane.request("PATCH", project.path, {"project": {"name": "shop"}})
        assert not plane.run(watching.observe, project.id).is_due
        assert plane.works() == []
        assert plane.run(servers.suspend_due, plane.now)
        assert plane.work_off() == [SuspendCompute(project.main, project.endpoint)]
        assert project.state() == "idle"


def test_connection_postpones_a_suspension_that_is_due() -> None:
    """The check before the suspension may have begun before the connection."""
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.clock.advance(300)
        assert plane.run(databases.wake, project.endpoint) is None
        assert not plane.run(servers.suspend_due, plane.now)
        assert plane.works() == []


def test_suspension_of_a_compute_of_an_expired_branch_is_left_to_the_deletion() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        created = project.branch(compute=True, expires_at="2026-01-01T00:04:00Z")
        plane.work_off()
        plane.clock.advance(302)
        assert plane.run(servers.suspend_due, plane.now)
        own = [work for work in plane.works() if isinstance(work, SuspendCompute)]
        branch_ids = sorted(work.branch_id for work in own)
        assert branch_ids == sorted([project.main, created["branch"]["id"]])
