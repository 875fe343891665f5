"""The order of work on real databases, as a pure decision."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from neonctl_local import Durations
from neonctl_local.clock import SECOND
from neonctl_local.engine import lifecycle, work
from neonctl_local.engine.work import (
    ConfigureBranch,
    CopyCluster,
    CreateCluster,
    DeleteClusters,
    ReplaceCluster,
    StartCompute,
    StopClusters,
    SuspendCompute,
    Work,
)
from neonctl_local.storage.tables import NEVER, Operation

IDS = st.sampled_from("abcd")
WORKS: st.SearchStrategy[Work] = st.one_of(
    st.builds(CreateCluster, IDS, st.just(18), st.none() | IDS),
    st.builds(CopyCluster, IDS, IDS),
    st.builds(ReplaceCluster, IDS, IDS, preserved_id=st.none() | IDS),
    st.builds(StartCompute, IDS, st.just("ep")),
    st.builds(SuspendCompute, IDS, st.just("ep")),
    st.builds(ConfigureBranch, IDS),
    st.builds(StopClusters, st.lists(IDS)),
    st.builds(DeleteClusters, st.lists(IDS)),
)


def operation(number: int, task: Work, *, starts_at: int = 0) -> Operation:
    """Return an operation with unfinished work."""
    plan = lifecycle.without_end(lifecycle.plan("create_branch", 0, Durations()))
    return Operation(
        id=str(number),
        project_id="p",
        branch_id=None,
        endpoint_id=None,
        action="create_branch",
        position=number,
        work=work.encode(task),
        created_at=0,
        starts_at=starts_at,
        ends_at=starts_at + SECOND,
        settles_at=plan.settles_at,
        outcome=plan.outcome,
    )


def started(*tasks: Work, now: int = 0) -> list[Work]:
    """Return the work that may start, of unfinished work in this order."""
    operations = [operation(number, task) for number, task in enumerate(tasks)]
    return [work.of(found) for found in work.startable(operations, now)]


@given(WORKS)
def test_work_is_stored_with_its_operation(task: Work) -> None:
    assert work.of(operation(1, task)) == task


def test_operation_without_work_is_an_error() -> None:
    plain = replace(operation(1, ConfigureBranch("a")), work=None)
    with pytest.raises(ValueError, match="'1' has no work"):
        work.of(plain)


@pytest.mark.parametrize(
    ("task", "exclusive", "shared"),
    [
        (CreateCluster("a", 18), "a", ""),
        (CreateCluster("a", 18, "t"), "a", "t"),
        (CopyCluster("a", "b"), "a", "b"),
        (ReplaceCluster("a", "b"), "a", "b"),
        (ReplaceCluster("a", "a", preserved_id="c"), "ac", ""),
        (StartCompute("a", "ep"), "a", ""),
        (SuspendCompute("a", "ep"), "a", ""),
        (ConfigureBranch("a"), "a", ""),
        (StopClusters(["a", "b"]), "ab", ""),
        (DeleteClusters(["a", "b"]), "ab", ""),
    ],
)
def test_work_touches_clusters(task: Work, exclusive: str, shared: str) -> None:
    assert work.touches(task) == (set(exclusive), set(shared))


def test_copies_of_one_cluster_run_together() -> None:
    copies: list[Work] = [CopyCluster("b", "a"), CopyCluster("c", "a")]
    assert started(*copies) == copies


def test_change_waits_for_a_copy_of_the_cluster() -> None:
    copy, start = CopyCluster("b", "a"), StartCompute("a", "ep")
    assert started(copy, start) == [copy]


def test_copy_waits_for_an_earlier_change_that_has_not_started() -> None:
    copy, start, late = CopyCluster("b", "a"), StartCompute("a", "ep"), CopyCluster("c", "a")
    assert started(copy, start, late) == [copy]


def test_work_on_other_clusters_does_not_wait() -> None:
    tasks: list[Work] = [StartCompute("a", "ep"), ConfigureBranch("a"), StartCompute("b", "ep")]
    assert started(*tasks) == [tasks[0], tasks[2]]


def test_work_waits_for_its_planned_start() -> None:
    late = operation(1, StartCompute("a", "ep"), starts_at=5)
    assert work.startable([late], 4) == []
    assert work.startable([late], 5) == [late]


def test_work_after_an_open_operation_keeps_its_place() -> None:
    waiting = operation(1, StartCompute("a", "ep"), starts_at=NEVER)
    assert work.startable([waiting, operation(2, ConfigureBranch("a"))], SECOND) == []


@given(st.lists(WORKS, min_size=1, max_size=8))
def test_first_unfinished_work_never_waits(tasks: list[Work]) -> None:
    assert started(*tasks)[0] == tasks[0]


@given(st.lists(WORKS, max_size=8))
def test_work_that_starts_together_never_changes_a_cluster_of_other_work(
    tasks: list[Work],
) -> None:
    touched = [work.touches(task) for task in started(*tasks)]
    for index, item in enumerate(touched):
        for other in touched[:index]:
            assert not item.exclusive & (other.exclusive | other.shared)
            assert not item.shared & other.exclusive


@given(st.lists(WORKS, max_size=8), st.data())
def test_conflicting_work_runs_in_the_order_of_creation(
    tasks: list[Work], data: st.DataObject
) -> None:
    unfinished = [operation(number, task) for number, task in enumerate(tasks)]
    while unfinished:
        ready = work.startable(unfinished, 0)
        done = data.draw(st.sampled_from(ready))
        touched = work.touches(work.of(done))
        earlier = unfinished[: unfinished.index(done)]
        assert not any(touched.conflicts(work.touches(work.of(other))) for other in earlier)
        unfinished.remove(done)
