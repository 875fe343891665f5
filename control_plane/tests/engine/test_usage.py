"""The usage of branches: runs of their computes, and sizes."""

from collections.abc import Callable

import msgspec
import pytest

from control_plane.tests.driven import POSTGRES, DrivenControlPlane, DrivenProject
from neonctl_local.api.billing.metrics import OF_PROJECTS
from neonctl_local.clock import SECOND
from neonctl_local.engine import databases, operations
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.engine.timeframes import Span
from neonctl_local.engine.usage import (
    BranchUsage,
    ComputeEvent,
    Running,
    of_project,
    running_spans,
)
from neonctl_local.settings import PostgresRules
from neonctl_local.storage.transactions import Transaction

HOUR = 3600 * SECOND


@pytest.mark.parametrize(
    ("events", "runs_now", "expected"),
    [
        ([("start", 10), ("suspend", 20), ("start", 30)], True, [Span(10, 20), Span(30, 100)]),
        ([("start", 10), ("start", 15), ("suspend", 20)], False, [Span(10, 20)]),
        ([("suspend", 7), ("suspend", 8)], False, [Span(5, 7)]),
        ([], True, [Span(5, 100)]),
        ([], False, []),
    ],
)
def test_compute_runs_from_its_start_until_its_suspension(
    events: list[tuple[str, int]], runs_now: bool, expected: list[Span]
) -> None:
    history = [
        ComputeEvent(endpoint_id="ep", action=f"{verb}_compute", settles_at=at)
        for verb, at in events
    ]
    assert running_spans(history, Span(5, 100), runs_now=runs_now) == expected


USAGE = BranchUsage(
    id="br",
    is_root=True,
    life=Span(HOUR // 2, 10 * HOUR),
    size=1000,
    runs=[Running(Span(0, 600 * SECOND), 0.25), Running(Span(HOUR, 2 * HOUR), 2.0)],
)


def test_time_of_computes_is_counted_within_the_timeframe() -> None:
    first, both = Span(0, HOUR), Span(0, 2 * HOUR)
    assert USAGE.active_seconds(first) == 600
    assert USAGE.active_seconds(both) == 4200
    assert USAGE.compute_unit_seconds(first) == 150
    assert USAGE.compute_unit_seconds(both) == 7350
    assert USAGE.compute_unit_seconds(Span(3 * HOUR, 4 * HOUR)) == 0


def test_storage_is_counted_during_the_life_of_the_branch() -> None:
    first, after = Span(0, HOUR), Span(10 * HOUR, 11 * HOUR)
    assert USAGE.size_within(first) == 1000
    assert USAGE.bytes_hour(first) == 500
    assert USAGE.bytes_hour(Span(0, 31 * 24 * HOUR)) == 9500
    for measure in (USAGE.size_within, USAGE.bytes_hour):
        assert measure(after) == 0


def test_only_child_branches_have_branch_hours() -> None:
    day = Span(0, 24 * HOUR)
    assert USAGE.branch_hours(day) == 0
    assert msgspec.structs.replace(USAGE, is_root=False).branch_hours(day) == 9


def test_bytes_month_are_bytes_times_hours_as_neon_documents() -> None:
    month = Span(0, 31 * 24 * HOUR)
    stored = msgspec.structs.replace(USAGE, life=month, size=2 * 10**9)
    assert OF_PROJECTS["root_branch_bytes_month"](stored, month) == 1_488_000_000_000


def crash(plane: DrivenControlPlane, project: DrivenProject) -> None:
    plane.run(databases.crashed, project.main, "the server was killed by signal 9")


def restart(plane: DrivenControlPlane, _project: DrivenProject) -> None:
    plane.run(databases.stop_all)


def delete_and_recover(plane: DrivenControlPlane, project: DrivenProject) -> None:
    plane.request("DELETE", project.path)
    plane.work_off()
    plane.clock.advance(HOUR // SECOND)
    plane.request("POST", f"{project.path}/recover")


@pytest.mark.parametrize(
    ("stop", "postgres"),
    [
        (crash, POSTGRES),
        (restart, POSTGRES),
        (delete_and_recover, POSTGRES),
        (delete_and_recover, None),
    ],
)
def test_compute_that_ends_without_a_suspension_is_not_counted_afterwards(
    stop: Callable[[DrivenControlPlane, DrivenProject], None], postgres: PostgresRules | None
) -> None:
    with DrivenControlPlane(postgres=postgres) as plane:
        project = DrivenProject(plane)
        plane.run(operations.fail_next, "suspend_compute", Failure(), 1)
        plane.clock.advance(60)
        before = plane.run(active_seconds, project.id)
        stop(plane, project)
        plane.clock.advance(3600)
        assert plane.run(active_seconds, project.id) == before
        plane.request("POST", f"{project.endpoint_path}/start")
        plane.work_off()
        plane.clock.advance(10)
        assert plane.run(active_seconds, project.id) in range(before + 10, before + 15)


@pytest.mark.parametrize("postgres", [POSTGRES, None])
def test_deleted_compute_whose_suspension_failed_is_not_counted_afterwards(
    postgres: PostgresRules | None,
) -> None:
    with DrivenControlPlane(postgres=postgres) as plane:
        project = DrivenProject(plane)
        plane.clock.advance(60)
        plane.run(operations.fail_next, "suspend_compute", Failure(), 1)
        plane.request("DELETE", project.endpoint_path)
        plane.work_off()
        before = plane.run(active_seconds, project.id)
        plane.clock.advance(3600)
        assert plane.run(active_seconds, project.id) == before > 0


def test_project_that_is_deleted_while_its_compute_starts_is_not_counted_afterwards() -> None:
    with DrivenControlPlane(postgres=None) as plane:
        project = DrivenProject(plane)
        plane.request("POST", f"{project.endpoint_path}/suspend")
        plane.clock.advance(60)
        plane.request("POST", f"{project.endpoint_path}/start")
        plane.request("DELETE", project.path)
        before = plane.run(active_seconds, project.id)
        plane.clock.advance(3600)
        plane.request("POST", f"{project.path}/recover")
        assert plane.run(active_seconds, project.id) == before


def test_compute_is_counted_until_it_became_idle_while_the_control_plane_was_stopped() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.clock.advance(3600)
        before = plane.run(active_seconds, project.id)
        assert before in range(300, 310)
        plane.run(databases.stop_all)
        assert plane.run(active_seconds, project.id) == before


def active_seconds(tx: Transaction, project_id: str) -> int:
    """Return how long the computes of a project have run so far."""
    life = Span(0, tx.now)
    return sum(branch.active_seconds(life) for branch in of_project(tx, project_id, 0))
