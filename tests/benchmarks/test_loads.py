"""Loads on the fake clock: the targets of waits under rate limits."""

import msgspec
import pytest

from benchmarks.loads import judge, lone
from benchmarks.loads.catalogue import catalogue
from benchmarks.loads.load import Load
from benchmarks.loads.measure import Outcome, run
from benchmarks.servers.control_plane import CREATE
from neonctl_async import PollPolicy

LOADS = (
    "300 in 150",
    "300 in 150, chained",
    "300 in 150, 0.5-6 s",
    "600 in 300",
    "60 in 60",
    "200 in 100, two humps",
    "1,000 operations in 1 project, 1-10 s",
    "with history",
    "20 in 1, locked",
    "60 in 20, locked",
)
SURPRISES = {
    "5 in 3, 10 a minute": 10.0,
    "first 1 s, then 10 s": 5.0,
    "first 10 s, then 1 s": 5.0,
    "half 1 s, half 10 s, at once": 5.0,
    "with wrong history": 3.0,
    "clock steps": 3.0,
}
"""Loads that no client can foresee, and the longest delay after the last operation, in seconds."""


def load_named(name: str, seed: int = 0) -> Load:
    return next(load for load in catalogue(seed) if load.name == name)


def missed(outcome: Outcome) -> list[str]:
    return [name for name, is_met in outcome.criteria().items() if not is_met]


@pytest.mark.long
@pytest.mark.parametrize("name", LOADS)
def test_load_within_the_limits_is_not_late(name: str) -> None:
    assert missed(run(load_named(name))) == []


@pytest.mark.long
@pytest.mark.parametrize(("name", "seconds"), SURPRISES.items())
def test_surprise_delays_waits_but_loses_none(name: str, seconds: float) -> None:
    outcome = run(load_named(name))
    assert outcome.failures == []
    assert outcome.refused == 0
    assert outcome.delay <= seconds


@pytest.mark.long
@pytest.mark.parametrize("number", range(2))
def test_drawn_load_within_the_limits_is_not_late(number: int) -> None:
    prefix = f"drawn {number}:"
    load = next(load for load in catalogue(7) if load.name.startswith(prefix))
    # With requests to spare, polls are more frequent than the oracle's.
    assert set(missed(run(load))) <= {"requests"}


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    [case for case in lone.cases(0, waits=60) if case.has_limits],
    ids=lambda case: case.name,
)
def test_single_wait_is_neither_late_nor_expensive(case: lone.Case) -> None:
    assert lone.run(case).missed(case) == []


def test_every_branch_is_awaited_until_it_is_ready() -> None:
    outcome = run(load_named("100 in 10, single"))
    assert outcome.failures == []
    assert len(outcome.waits) == 100
    assert min(outcome.lateness) >= 0
    assert outcome.refused == 0
    assert outcome.polls >= outcome.oracle.requests - 100


@pytest.mark.parametrize("name", ["40 in 1, 1 s, locked", "60 in 20, locked"])
def test_creations_in_a_locked_project_follow_each_other_soon(name: str) -> None:
    outcome = run(load_named(name))
    creates = [one for one in outcome.requests if one.route == CREATE]
    locked = sum(one.status == 423 for one in creates)
    assert outcome.failures == []
    assert locked > 0
    assert len(creates) - locked == len(outcome.load.branches) == len(outcome.waits)
    # Creations in one project have no other way than one after another.
    branches_of_a_project = len(outcome.load.branches) / len(outcome.load.projects)
    assert 0 < max(outcome.beyond_serial.values()) <= max(3.5, 0.3 * branches_of_a_project)


def test_locked_load_misses_its_target_if_its_creations_are_late() -> None:
    load = load_named("20 in 1, locked")
    late = run(load, polling=PollPolicy.constant(3.0))
    assert missed(late) == ["20 s beyond serial"]


def test_judge_compares_a_locked_project_with_its_serial_work() -> None:
    outcome = run(load_named("20 in 1, locked"))
    assert judge.excess(outcome) == [max(outcome.beyond_serial.values())]
    score = judge.Score("locked", "a load", "default", 9.0, 0.0, 9.0, 100, 0, 0, 0.0)
    other = msgspec.structs.replace(score, family="fan-out", lateness=1.0)
    assert [line[:22] for line in judge.table([score, other])][1:] == [
        "locked               9",
        "fan-out              1",
        "all                  1",
    ]


def test_same_seed_gives_the_same_load() -> None:
    first, second = (list(catalogue(3)) for _ in range(2))
    assert first == second
    assert first != list(catalogue(4))
    assert len({load.name for load in first}) == len(first)


@pytest.mark.long
def test_other_client_makes_the_service_refuse_requests() -> None:
    outcome = run(load_named("another client, half"))
    assert outcome.refused > 0
    assert "no 429" not in outcome.criteria()
