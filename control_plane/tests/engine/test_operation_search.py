"""The search of operations, compared with a search of all operations in Python."""

import random
import sqlite3
from collections.abc import Iterator
from itertools import product

import pytest

from control_plane.tests.driven import DrivenControlPlane, DrivenProject
from neonctl_local.clock import SECOND, Instant
from neonctl_local.console.labels import LABELS, status_label
from neonctl_local.engine import lifecycle
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.engine.operation_search import (
    OperationFilter,
    OperationPage,
    search,
)
from neonctl_local.settings import Durations
from neonctl_local.storage.tables import Operation, OperationPlan
from neonctl_local.storage.transactions import Transaction

ACTIONS = ("create_branch", "start_compute", "apply_config")
BRANCHES = ("br-1", "br-2", "br-3")
COUNT = 400
FAILURES = (
    None,
    None,
    Failure(),
    Failure(status="error"),
    Failure(status="cancelled"),
    Failure(status="skipped"),
    Failure(retry_after=3),
)


@pytest.fixture(scope="module")
def control_plane() -> Iterator[DrivenControlPlane]:
    """A control plane with emulated databases. Its clock stands still."""
    with DrivenControlPlane(postgres=None) as plane:
        yield plane


@pytest.fixture(scope="module")
def operations(control_plane: DrivenControlPlane) -> list[Operation]:
    """Operations of a project, newest first. Those of the last seconds are unsettled."""
    project, other = (DrivenProject(control_plane, name=name).id for name in ("a", "b"))
    control_plane.run(lambda tx: tx.execute("DELETE FROM operations"))
    now = control_plane.now
    stored = [_operation(number, project, now) for number in range(COUNT)]
    foreign = [_operation(number, other, now) for number in range(50)]
    control_plane.run(lambda tx: [tx.insert(row) for row in (*stored, *foreign)])
    return stored[::-1]


def _operation(number: int, project_id: str, now: Instant) -> Operation:
    choose = random.Random(number)
    created_at = now - (COUNT - number) * SECOND // 10
    action = choose.choice(ACTIONS)
    durations = Durations(default=choose.choice([0.5, 4, 30]), scheduling=0.5)
    plan = lifecycle.plan(action, created_at, durations, failure=choose.choice(FAILURES))
    return Operation(
        id=f"{project_id}-{number}",
        project_id=project_id,
        branch_id=choose.choice(BRANCHES),
        endpoint_id=None,
        action=action,
        position=created_at,
        **{name: getattr(plan, name) for name in OperationPlan.__struct_fields__},
    )


def label_of(operation: Operation, now: Instant) -> str:
    state = lifecycle.state_at(operation, now)
    return status_label(state.status, will_retry=state.retry_at is not None)


def matching(operations: list[Operation], wanted: OperationFilter, now: Instant) -> list[Operation]:
    return [
        operation
        for operation in operations
        if (wanted.branch_ids is None or operation.branch_id in wanted.branch_ids)
        and wanted.action in {None, operation.action}
        and wanted.label in {None, label_of(operation, now)}
    ]


SEVERAL = ("br-1", "br-2", "br-absent")
FILTERS = [
    OperationFilter(branch_ids=branches, action=action, label=label)
    for branches, action, label in product(
        (None, ("br-2",), ("br-absent",), SEVERAL),
        (None, "start_compute", "tenant_detach"),
        (None, *LABELS),
    )
]


def test_pages_show_each_matching_operation_once_newest_first(
    control_plane: DrivenControlPlane, operations: list[Operation]
) -> None:
    project = operations[0].project_id
    for wanted in FILTERS:
        expected = matching(operations, wanted, control_plane.now)
        pages = [control_plane.run(search, project, wanted, limit=7)]
        while (older := pages[-1].older) is not None:
            pages.append(control_plane.run(search, project, wanted, before=older, limit=7))
        assert [row for page in pages for row in page.operations] == expected, wanted
        back = [pages[-1]]
        while (newer := back[-1].newer) is not None:
            back.append(control_plane.run(search, project, wanted, after=newer, limit=7))
        assert back[-1].operations == expected[:7], wanted
        assert {row.id for page in back for row in page.operations} == {row.id for row in expected}


def test_operations_of_every_label_are_found(
    control_plane: DrivenControlPlane, operations: list[Operation]
) -> None:
    for label in LABELS:
        wanted = OperationFilter(label=label)
        assert control_plane.run(search, operations[0].project_id, wanted, limit=1).operations


def ids(page: OperationPage) -> list[str]:
    return [operation.id.rpartition("-")[2] for operation in page.operations]


def test_pages_stay_the_same_when_operations_are_added(
    control_plane: DrivenControlPlane, operations: list[Operation]
) -> None:
    project, everything = operations[0].project_id, OperationFilter()
    first = control_plane.run(search, project, everything, limit=10)
    second = control_plane.run(search, project, everything, before=first.older, limit=10)
    added = _operation(COUNT, project, control_plane.now)
    control_plane.run(lambda tx: tx.insert(added))
    try:
        again = control_plane.run(search, project, everything, before=first.older, limit=10)
        assert ids(again) == ids(second)
        back = control_plane.run(search, project, everything, after=second.newer, limit=10)
        assert ids(back) == ids(first)
        assert back.newer == operations[0].position
    finally:
        control_plane.run(lambda tx: tx.execute("DELETE FROM operations WHERE id = ?", added.id))


def test_newer_page_is_never_short(
    control_plane: DrivenControlPlane, operations: list[Operation]
) -> None:
    project, everything = operations[0].project_id, OperationFilter()
    after = operations[3].position
    page = control_plane.run(search, project, everything, after=after, limit=10)
    assert page.operations == operations[:10]
    assert page.newer is None


def test_position_after_all_matching_operations_shows_the_newest_page(
    control_plane: DrivenControlPlane, operations: list[Operation]
) -> None:
    project, everything = operations[0].project_id, OperationFilter()
    page = control_plane.run(search, project, everything, before=0, limit=10)
    assert page.operations == operations[:10]


def test_search_for_at_most_one_branch_reads_no_more_rows_than_it_returns(
    control_plane: DrivenControlPlane, operations: list[Operation]
) -> None:
    """Settled operations come from an index in the order of the page: SQLite does not sort."""
    for wanted in FILTERS:
        if wanted.branch_ids == SEVERAL:
            continue
        plans = control_plane.run(plans_of, operations[0].project_id, wanted)
        assert plans, wanted
        for plan in plans:
            assert plan.startswith("SEARCH operations USING") or "unsettled" in str(plans), plan
            assert "SCAN operations" not in plan


def plans_of(tx: Transaction, project_id: str, wanted: OperationFilter) -> list[str]:
    """Return the plans of the statements that search with an index."""
    connection: sqlite3.Connection = tx._connection  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - only a connection explains its plans
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    search(tx, project_id, wanted, limit=5)
    connection.set_trace_callback(None)
    return [
        row[3]
        for statement in statements
        if "INDEXED BY" in statement
        for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
    ]
