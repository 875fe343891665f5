"""Observations of a project: what changes their fingerprint, and the time of the next change."""

from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.tests.driven import DrivenControlPlane, DrivenProject
from neonctl_local import Durations
from neonctl_local.clock import SECOND
from neonctl_local.engine import background, operations, watching
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.engine.watching import Observation
from neonctl_local.settings import BackgroundIntervals
from neonctl_local.storage.tables import Operation, Project

NEVER = BackgroundIntervals(
    suspend_after=None, check_availability_every=None, detach_after=None, archive_after_age=None
)
DATABASE = {"name": "sales", "owner_name": "neondb_owner"}


@pytest.fixture
def control_plane() -> Iterator[DrivenControlPlane]:
    """A control plane with emulated databases and without background work."""
    durations = Durations(default=1, scheduling=0.25)
    with DrivenControlPlane(postgres=None, durations=durations, intervals=NEVER) as plane:
        yield plane


@pytest.fixture
def project(control_plane: DrivenControlPlane) -> DrivenProject:
    """A project whose first operations have finished."""
    created = DrivenProject(control_plane, name="shop")
    control_plane.clock.advance(9)
    return created


def observe(project: DrivenProject) -> Observation:
    return project.plane.run(watching.observe, project.id)


def seconds_left(project: DrivenProject) -> float:
    """Return the time until the project changes by itself."""
    at = observe(project).changes_at
    assert at is not None
    return (at - project.plane.now) / SECOND


def steps(project: DrivenProject) -> list[float]:
    """Let the time pass, from change to change. Return the seconds of each change."""
    start = project.plane.now
    found: list[float] = []
    while (at := observe(project).changes_at) is not None:
        before = observe(project).fingerprint
        project.plane.clock.advance((at - project.plane.now) / SECOND)
        project.plane.run(background.catch_up, project.id)
        assert observe(project).fingerprint != before, "nothing changed at this time"
        found.append((project.plane.now - start) / SECOND)
    return found


def test_nothing_changes_without_requests_and_background_work(project: DrivenProject) -> None:
    before = observe(project)
    assert before.changes_at is None
    project.plane.clock.advance(10 * 86400)
    assert observe(project) == before


def test_missing_project_has_an_observation(control_plane: DrivenControlPlane) -> None:
    assert control_plane.run(watching.observe, "no-project-1") == Observation(0)


def test_operations_change_when_they_start_and_finish(project: DrivenProject) -> None:
    before = observe(project).fingerprint
    project.branch(name="preview", compute=True)
    assert observe(project).fingerprint != before
    # create_branch is scheduled for a quarter of its second; start_compute follows it.
    assert steps(project) == [0.25, 1.0, 2.0]


def test_retried_operation_changes_four_times(project: DrivenProject) -> None:
    project.plane.run(operations.fail_next, "create_branch", Failure(retry_after=10), 1)
    project.branch(name="preview")
    assert steps(project) == [0.25, 1.0, 11.0, 12.0]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "", {"project": {"name": "renamed"}}),
        ("PATCH", "", {"project": {"history_retention_seconds": 600}}),
        ("PATCH", "/branches/{main}", {"branch": {"name": "renamed"}}),
        ("PATCH", "/branches/{main}", {"branch": {"protected": True}}),
        ("POST", "/branches/{child}/set_as_default", None),
        ("PATCH", "/branches/{child}", {"branch": {"expires_at": "2026-01-31T00:00:00Z"}}),
        ("DELETE", "/branches/{child}", None),
        ("POST", "/branches/{main}/databases", {"database": DATABASE}),
        ("POST", "/branches/{main}/roles", {"role": {"name": "alex"}}),
        ("POST", "/branches/{main}/roles/neondb_owner/reset_password", None),
        ("PATCH", "/endpoints/{endpoint}", {"endpoint": {"name": "named"}}),
        ("PATCH", "/endpoints/{endpoint}", {"endpoint": {"suspend_timeout_seconds": 120}}),
        ("POST", "/endpoints/{endpoint}/suspend", None),
        ("DELETE", "", None),
    ],
)
def test_each_request_that_changes_the_project_changes_the_fingerprint(
    project: DrivenProject, method: str, path: str, body: dict[str, Any] | None
) -> None:
    child = project.branch(name="child")["branch"]["id"]
    project.plane.clock.advance(9)
    before = observe(project)
    path = path.format(main=project.main, child=child, endpoint=project.endpoint)
    project.plane.request(method, f"{project.path}{path}", body)
    assert observe(project).fingerprint != before.fingerprint


def test_requests_of_another_project_change_nothing(project: DrivenProject) -> None:
    before = observe(project)
    other = DrivenProject(project.plane, name="other")
    other.branch(name="preview")
    assert observe(project) == before


def test_reading_changes_nothing(project: DrivenProject) -> None:
    before = observe(project)
    project.plane.request("GET", project.path)
    project.plane.request("GET", f"{project.path}/operations")
    assert observe(project) == before


def test_background_event_is_due_at_its_time() -> None:
    intervals = BackgroundIntervals(suspend_after=60, check_availability_every=None)
    with DrivenControlPlane(postgres=None, intervals=intervals) as plane:
        project = DrivenProject(plane, name="shop")
        plane.clock.advance(9)
        assert 0 < seconds_left(project) < 60
        assert not observe(project).is_due
        plane.clock.advance(seconds_left(project))
        assert observe(project).is_due
        plane.run(background.catch_up, project.id)
        assert not observe(project).is_due
        assert plane.run(lambda tx: tx.select(Operation, "ORDER BY position"))[-1].action == (
            "suspend_compute"
        )


def test_postponed_detachment_is_no_change() -> None:
    with DrivenControlPlane(postgres=None) as plane:
        project = DrivenProject(plane, name="shop")
        plane.clock.advance(9)
        before = observe(project).fingerprint
        row = plane.run(lambda tx: tx.get(Project, project.id))
        plane.clock.advance(5)
        plane.run(background.postpone_detachment, row)
        assert plane.run(lambda tx: tx.get(Project, project.id)) != row
        assert observe(project).fingerprint == before


def test_deleted_project_has_no_background_work() -> None:
    with DrivenControlPlane(postgres=None) as plane:
        project = DrivenProject(plane, name="shop")
        plane.clock.advance(9)
        plane.request("DELETE", project.path)
        plane.clock.advance(30 * 86400)
        observation = observe(project)
        assert (observation.changes_at, observation.is_due) == (None, False)


def test_real_work_changes_the_fingerprint_when_it_is_done() -> None:
    with DrivenControlPlane(intervals=NEVER) as plane:
        project = DrivenProject(plane, name="real")
        plane.work_off()
        plane.clock.advance(9)
        project.branch(name="preview", compute=True)
        plane.clock.advance(30)
        running = observe(project)
        assert running.changes_at is None  # the time at which the work is done is unknown
        plane.work_off()
        assert observe(project).fingerprint != running.fingerprint
