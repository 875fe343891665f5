import logging
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.waiting.timing.pace import (
    AMPLE,
    EXPLORERS,
    MAX_STRETCH,
    MINUTE,
    PLENTY,
    POLLS_OF_PROJECT,
    RECHECK_SECONDS,
    RECHECKS,
    SCOUT_SHARE,
)
from tests.waiting.timing.conditions import RateBudget

KIND = ("create_branch",)


@pytest.mark.parametrize(
    ("share", "stretch"),
    [
        (math.inf, 1.0),
        (PLENTY, 1.0),
        (PLENTY / 2, 2.0),
        (1.0, PLENTY),
        (0.5, 2 * PLENTY),
        (0.001, MAX_STRETCH),
        (0.0, MAX_STRETCH),
        (-3.0, MAX_STRETCH),
    ],
)
def test_delays_are_stretched_in_proportion_to_the_polls_that_are_missing(
    share: float, stretch: float
) -> None:
    assert RateBudget(share).pace().stretch() == stretch


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_smaller_share_never_stretches_less(first: float, second: float) -> None:
    less, more = (RateBudget(share).pace().stretch() for share in sorted((first, second)))
    assert 1 <= more <= less <= MAX_STRETCH


def test_crowded_project_gets_more_polls_while_the_budget_is_ample() -> None:
    assert RateBudget(AMPLE).pace().is_ample()
    assert not RateBudget(0.99 * AMPLE).pace().is_ample()


def test_each_wait_of_a_project_counts_up_to_a_limit() -> None:
    budget = RateBudget()
    pace = budget.pace()
    reported: list[tuple[int, int]] = []
    waits = (0, 1, 2, POLLS_OF_PROJECT, 100, 2, 0)
    for before, now in pairwise(waits):
        pace.note_waits(before, now)
        reported.append(budget.pending)
    most = POLLS_OF_PROJECT
    assert reported == [(1, 1), (2, 1), (most, 1), (most, 1), (2, 1), (0, 0)]


def test_waits_of_all_projects_are_added() -> None:
    budget = RateBudget()
    pace = budget.pace()
    for waits in (1, 3, 100):
        pace.note_waits(0, waits)
    assert budget.pending == (1 + 3 + POLLS_OF_PROJECT, 3)
    assert pace.projects == 3


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_short_budget_is_logged_once_until_it_is_ample_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "neonctl_async")
    budget = RateBudget()
    pace = budget.pace()
    pace.note_waits(0, 3)
    for share in (math.inf, PLENTY):
        budget.share = share
        assert pace.stretch() == 1
    assert messages(caplog) == []
    # From PLENTY on nothing is stretched, but the episode ends only at AMPLE.
    for share in (2.345, 1.0, PLENTY, 0.5, 0.99 * AMPLE, -1.0):
        budget.share = share
        pace.stretch()
    [message] = messages(caplog)
    assert message == (
        "the rate budget is short: with the calls that wait for a slot, it allows 2.3 polls for "
        "each wait. Polls come later than usual, and calls that start operations may wait longer"
    )
    for share in (AMPLE, -1.0):
        budget.share = share
        pace.stretch()
    assert len(messages(caplog)) == 2
    assert "it allows 0 polls" in messages(caplog)[1]
    assert {record.name for record in caplog.records} == {"neonctl_async.waiting.timing.pace"}
    assert {record.levelno for record in caplog.records} == {logging.INFO}


def test_short_budget_is_not_logged_without_waits(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "neonctl_async")
    pace = RateBudget(share=1.0).pace()
    assert pace.stretch() == PLENTY
    assert messages(caplog) == []
    pace.note_waits(0, 1)
    pace.stretch()
    assert len(messages(caplog)) == 1


@pytest.mark.parametrize(
    ("waited", "round_seconds", "longest"),
    [
        (0.0, 1.0, 15.0),
        (0.999 * MINUTE, 1.0, 15.0),
        (MINUTE, 8.0, 8.0),
        (MINUTE, 40.0, 15.0),
        (10 * MINUTE, 1.0, 5.0),
    ],
)
def test_longest_delay_is_stretched_only_as_far_as_the_budget_needs_after_a_minute(
    waited: float, round_seconds: float, longest: float
) -> None:
    pace = RateBudget(share=1.0, round_seconds=round_seconds).pace()
    assert pace.longest_delay(5.0, 3.0, waited) == longest


def test_scouted_age_is_the_largest_age_of_pending_waits_of_a_kind() -> None:
    pace = RateBudget().pace()
    assert pace.scouted_age(KIND) == 0.0
    for age in (1.0, 3.0, 2.0):
        pace.note_pending(KIND, age)
    assert pace.scouted_age(KIND) == 3.0
    assert pace.scouted_age(("other",)) == 0.0


def test_scouted_age_is_forgotten_when_nothing_is_pending() -> None:
    pace = RateBudget(1.0).pace()
    pace.note_waits(0, 1)
    pace.note_waits(0, 1)
    pace.note_pending(KIND, 2000.0)
    pace.note_waits(1, 0)
    assert pace.scouted_age(KIND) == 2000.0
    pace.note_waits(1, 0)
    assert pace.scouted_age(KIND) == 0.0


@pytest.mark.parametrize("factor", [1, 2, 5])
def test_plans_made_again_in_a_second_are_limited(factor: int) -> None:
    pace = RateBudget(1.0).pace()
    assert pace.recheck_seconds() == RECHECK_SECONDS
    for _ in range(factor * RECHECKS):
        pace.note_waits(0, 1)
    assert pace.recheck_seconds() == factor


def test_first_scout_is_polled_at_once() -> None:
    pace = RateBudget(1.0).pace()
    pace.note_waits(0, 1)
    assert pace.scout_at(1.0, stretch=5.0) == -math.inf
    assert pace.explore_at(1.0) == -math.inf


@pytest.mark.parametrize(
    ("free", "projects", "stretch", "scouts"),
    [
        (1000.0, 1, 5.0, SCOUT_SHARE * 1000),
        (400.0, 1, 5.0, SCOUT_SHARE * 400),
        (0.0, 100, 2.0, 25.0),
        (0.0, 100, 5.0, 4.0),
        (1000.0, 100, 5.0, 10.0),
    ],
)
def test_number_of_scouts_follows_the_free_slots_and_the_projects(
    free: float, projects: int, stretch: float, scouts: float
) -> None:
    pace = RateBudget(1.0, free).pace()
    for _ in range(projects):
        pace.note_waits(0, 1)
    pace.note_scout(100.0)
    assert pace.scout_at(2.0, stretch) == pytest.approx(100 + 2 / scouts)
    assert pace.scout_at(4.0, stretch) == pytest.approx(100 + 4 / scouts)


def test_explorers_are_a_share_of_the_projects() -> None:
    pace = RateBudget(1.0).pace()
    for _ in range(50):
        pace.note_waits(0, 2)
    pace.note_scout(100.0)
    assert pace.explore_at(2.0) == pytest.approx(100 + 2 / (EXPLORERS * 50))
