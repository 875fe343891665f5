"""The client that knows when each operation finishes."""

from collections.abc import Sequence

import pytest

from benchmarks.loads.load import Branch, Load
from benchmarks.loads.oracle import Optimum, optimum
from benchmarks.servers.control_plane import Settings


def load_of(
    durations: Sequence[float],
    *,
    projects: int = 1,
    per_minute: int = 700,
    per_second: int = 40,
    locks_projects: bool = False,
) -> Load:
    branches = tuple(
        Branch(f"b{n}", f"p{n % projects}", 0.0, ((seconds,),))
        for n, seconds in enumerate(durations)
    )
    settings = Settings(
        per_minute=per_minute, per_route_per_second=per_second, locks_projects=locks_projects
    )
    return Load(name="load", branches=branches, settings=settings)


@pytest.mark.parametrize(
    ("durations", "polls", "end"),
    [
        ([3.0], 1, 3.0),
        ([3.0, 4.0], 1, 4.0),
        ([3.0, 4.1], 2, 4.1),
        ([3.0, 3.9, 4.8], 2, 4.8),
    ],
)
def test_one_poll_serves_the_ends_of_a_second(
    durations: list[float], polls: int, end: float
) -> None:
    best = optimum(load_of(durations))
    assert (best.requests, best.end) == (len(durations) + polls, end)
    assert best.worst <= 1.0


def test_projects_do_not_share_polls() -> None:
    assert optimum(load_of([3.0, 3.0], projects=2)).requests == 4


def test_creates_obey_the_limit_of_their_route() -> None:
    assert optimum(load_of([1.0] * 5, projects=5, per_second=2)) == Optimum(10, 3.0)


def test_polls_wait_for_the_account_and_then_serve_more_waits() -> None:
    # Both slots of the first minute are spent on the creates.
    assert optimum(load_of([1.0, 9.0], per_minute=2)) == Optimum(
        3, end=60.0, delay=51.0, worst=59.0
    )


def test_parallel_operations_end_with_the_longest_and_later_ones_add_to_it() -> None:
    branch = Branch("b", "p", 2.0, ((1.0, 4.0), (0.5,)))
    load = Load(name="load", branches=(branch,), settings=Settings(per_minute=700))
    assert optimum(load) == Optimum(2, 6.5)


def test_creates_of_a_locked_project_follow_each_other() -> None:
    load = load_of([2.0, 5.0, 3.0, 4.0], projects=2, locks_projects=True)
    assert load.serial_ends == {"p0": 5.0, "p1": 9.0}
    assert optimum(load) == Optimum(8, 9.0)


def test_serial_work_starts_when_its_branch_arrives() -> None:
    arrivals = {0.0: 2.0, 1.0: 2.0, 9.0: 1.0}
    branches = (Branch(f"b{at}", "p", at, ((seconds,),)) for at, seconds in arrivals.items())
    load = Load(
        name="load",
        branches=tuple(branches),
        settings=Settings(per_minute=700, locks_projects=True),
    )
    assert load.serial_ends == {"p": 10.0}
    assert optimum(load).end == 10.0
