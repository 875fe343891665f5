"""The pace of all polls, with a rate budget from the test."""

import logging

import pytest

from neonctl_async.waiting.timing.pace import MAX_STRETCH, SCOUTS, UNKNOWN_POLLS, Pace
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
