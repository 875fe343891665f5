"""Loads on the fake clock: the targets of waits under rate limits."""

import pytest

from benchmarks.loads import lone
from benchmarks.loads.catalogue import catalogue
from benchmarks.loads.load import Load
from benchmarks.loads.measure import Outcome, run

HELD = pytest.mark.xfail(strict=False, reason="the scheduler spends the minute too early")
LOADS = (
    pytest.param("300 in 150", marks=HELD),
    pytest.param("300 in 150, chained", marks=HELD),
    pytest.param("300 in 150, 50 ms", marks=HELD),
    pytest.param("300 in 150, 0.5-6 s", marks=HELD),
    pytest.param("600 in 300", marks=HELD),
    pytest.param("60 in 60", marks=HELD),
    pytest.param("30 in 15, 70 a minute", marks=HELD),
    pytest.param("5 in 3, 10 a minute", marks=HELD),
    pytest.param("200 in 100, two humps", marks=HELD),
    pytest.param("200 in 100, straggler", marks=HELD),
    pytest.param("200 in 20, lognormal, mixed", marks=HELD),
    pytest.param("first 1 s, then 10 s", marks=HELD),
    pytest.param("first 10 s, then 1 s", marks=HELD),
    pytest.param("1,000 operations in 1 project, 1-10 s", marks=HELD),
)


def load_named(name: str, seed: int = 0) -> Load:
    return next(load for load in catalogue(seed) if load.name == name)


def missed(outcome: Outcome) -> list[str]:
    return [name for name, is_met in outcome.criteria().items() if not is_met]


@pytest.mark.parametrize("name", LOADS)
def test_load_within_the_limits_is_not_late(name: str) -> None:
    assert missed(run(load_named(name))) == []


@HELD
@pytest.mark.parametrize("number", range(4))
def test_drawn_load_within_the_limits_is_not_late(number: int) -> None:
    prefix = f"drawn {number}:"
    load = next(load for load in catalogue(7) if load.name.startswith(prefix))
    assert missed(run(load)) == []


@HELD
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


def test_same_seed_gives_the_same_load() -> None:
    first, second = (list(catalogue(3)) for _ in range(2))
    assert first == second
    assert first != list(catalogue(4))
    assert len({load.name for load in first}) == len(first)


def test_other_client_makes_the_service_refuse_requests() -> None:
    outcome = run(load_named("another client, half"))
    assert outcome.refused > 0
    assert "no 429" not in outcome.criteria()
