"""The pace of all polls, with a rate budget from the test."""

import logging

import pytest

from neonctl_async.waiting.timing.pace import (
    LAST_POLL_MARGIN,
    MAX_STRETCH,
    MIN_STRETCH,
    OUTAGE,
    RESPONSES,
    SAFE_MARGIN,
    SCOUTS,
    UNKNOWN_POLLS,
    USUAL_SECONDS,
    Pace,
)
from tests.waiting.timing.conditions import Budget


def test_delays_are_not_stretched_without_a_limit() -> None:
    assert Pace(Budget(polls_wanted=1e6)).stretch() == 1.0


@pytest.mark.parametrize(
    ("left", "stretch"),
    [(700, 1.0), (170, 1.0), (120, 2.0), (102, 3.0), (71, MAX_STRETCH), (0, MAX_STRETCH), (-5, 7)],
)
def test_delays_are_stretched_so_that_all_polls_fit(left: float, stretch: float) -> None:
    # 70 of the slots are left for calls and waits that will come.
    assert Pace(Budget(polls_left=left, polls_wanted=100, per_minute=700)).stretch() == stretch


def test_delays_are_not_stretched_without_waits() -> None:
    assert Pace(Budget(polls_left=0.0, polls_wanted=0.0, per_minute=700)).stretch() == 1.0


def test_first_projects_are_scouts_of_an_action_until_they_are_released() -> None:
    pace = Pace(Budget())
    projects = [object() for _ in range(SCOUTS + 1)]
    assert all(pace.is_scout(project, ["create"]) for project in projects[:SCOUTS])
    assert not pace.is_scout(projects[-1], ["create"])
    assert pace.is_scout(projects[-1], ["create", "start"])
    assert pace.released_scouts == 0
    pace.release_scout(projects[0])
    assert pace.released_scouts == 1
    assert pace.is_scout(projects[-1], ["create"])
    assert not pace.is_scout(projects[0], ["create"])


def test_scouts_are_stretched_as_if_nobody_else_were_polled() -> None:
    left = 70 + SCOUTS * UNKNOWN_POLLS / 2
    pace = Pace(Budget(polls_left=left, polls_wanted=1000, per_minute=700))
    assert (pace.stretch_of_scouts(), pace.stretch()) == (2.0, MAX_STRETCH)


def test_last_polls_of_one_deadline_are_spread_before_it() -> None:
    budget = Budget()
    budget.polls_per_second = 40
    pace = Pace(budget)
    polls = [pace.last_polls.book(20.0, -1) for _ in range(80)]
    times = [poll.at for poll in polls]
    assert times[0] == 20.0
    assert min(times) == pytest.approx(20.0 - 79 / 40)
    assert len(set(times)) == 80
    pace.last_polls.cancel(polls[0])
    assert pace.last_polls.book(20.0, -1).at == 20.0


def test_short_budget_is_logged_once_until_it_is_plentiful(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="neonctl_async.waiting.timing.pace")
    budget = Budget(polls_left=120, polls_wanted=100, per_minute=700)
    pace = Pace(budget)
    for left in (120, 90, 200, 90, 700, 90):
        budget.polls_left = left
        pace.stretch()
    assert len(caplog.records) == 2
    assert "it allows 0.5 of the polls" in caplog.records[0].getMessage()


def test_stretch_falls_evenly_to_its_least_while_the_minute_is_nearly_unused() -> None:
    stretches: list[float] = []
    for used in (500, 140, 105, 70, 35, 0):
        budget = Budget(700 - used, polls_wanted=1, per_minute=700, is_contended=False)
        stretches.append(Pace(budget).stretch())
    assert stretches == [1.0, 1.0, 0.75, 0.5, 0.25, MIN_STRETCH]


def test_polls_that_are_wanted_count_as_used() -> None:
    budget = Budget(700, polls_wanted=105, per_minute=700, is_contended=False)
    assert Pace(budget).stretch() == 0.75


def test_minute_after_a_429_is_not_unused() -> None:
    assert Pace(Budget(700, per_minute=700, is_contended=True)).stretch() == 1.0


def test_account_without_a_limit_is_unused() -> None:
    assert Pace(Budget(is_contended=False)).stretch() == MIN_STRETCH


def test_margins_follow_the_slowest_of_the_newest_polls() -> None:
    pace = Pace(Budget())
    assert (pace.margin, pace.safe_margin) == (1.25 * USUAL_SECONDS, SAFE_MARGIN)
    pace.note_response(1.0, now=0.0, silence=5.0)
    assert (pace.margin, pace.safe_margin) == (1.25, 2.0)
    for number in range(RESPONSES):
        pace.note_response(0.01, now=float(number), silence=5.0)
    assert (pace.margin, pace.safe_margin) == (LAST_POLL_MARGIN, SAFE_MARGIN)


def test_retries_of_an_outage_share_a_part_of_the_limit() -> None:
    pace = Pace(Budget(per_minute=700))
    times = [pace.retries.book(10.0, 1).at for _ in range(70)]
    assert times[0] == 10.0
    assert times[-1] == pytest.approx(70.0, abs=2.0)


def test_first_success_ends_an_outage() -> None:
    pace = Pace(Budget())
    pace.note_response(0.1, now=0.0, silence=5.0)
    for _ in range(OUTAGE):
        assert not pace.is_out
        pace.note_failure()
    assert pace.is_out
    pace.note_response(0.1, now=2.0, silence=5.0)
    assert (pace.is_out, pace.recovered_at) == (False, 0.0)
    pace.note_response(0.1, now=60.0, silence=5.0)
    assert pace.recovered_at == 60.0
