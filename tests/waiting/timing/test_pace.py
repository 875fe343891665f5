"""The pace of all polls, with a rate budget from the test."""

import logging

import pytest

from neonctl_async.waiting.timing.pace import MAX_STRETCH, SCOUTS, Pace
from neonctl_async.waiting.timing.schedule import POLLS
from tests.waiting.timing.conditions import Budget


def test_every_mark_is_allowed_without_a_limit() -> None:
    pace = Pace(Budget())
    assert (pace.marks(), pace.stretch(), pace.is_short_for(100)) == (POLLS, 1.0, False)


@pytest.mark.parametrize(
    ("left", "marks"), [(600, 3), (400, 3), (300, 2), (200, 1), (0, 1), (-9, 1)]
)
def test_fewer_polls_for_each_wait_leave_fewer_marks(left: float, marks: int) -> None:
    assert Pace(Budget(polls_left=left, waits=200, per_minute=700)).marks() == marks


def test_marks_are_left_out_before_the_minute_is_used_up() -> None:
    # One wait would have enough with 100 slots. Others will come.
    assert Pace(Budget(polls_left=100, waits=1, per_minute=700)).marks() == 1


@pytest.mark.parametrize(
    ("left", "stretch"), [(300.0, 1.0), (150.0, 2.0), (0.0, MAX_STRETCH), (-5.0, MAX_STRETCH)]
)
def test_delays_are_stretched_so_that_each_wait_gets_its_polls(left: float, stretch: float) -> None:
    assert Pace(Budget(polls_left=left, waits=100, per_minute=700)).stretch() == stretch


def test_delays_are_not_stretched_without_waits() -> None:
    assert Pace(Budget(polls_left=0.0, waits=0, per_minute=700)).stretch() == 1.0


def test_scouts_are_stretched_as_if_nobody_else_were_polled() -> None:
    pace = Pace(Budget(polls_left=SCOUTS * POLLS / 2, waits=1000, per_minute=700))
    assert pace.stretch_of_scouts() == 2.0


def test_first_projects_are_scouts_of_an_action_until_they_are_released() -> None:
    pace = Pace(Budget())
    projects = [object() for _ in range(SCOUTS + 1)]
    assert all(pace.is_scout(project, ["create"]) for project in projects[:SCOUTS])
    assert not pace.is_scout(projects[-1], ["create"])
    assert pace.is_scout(projects[-1], ["create", "start"])
    pace.release_scout(projects[0])
    assert pace.is_scout(projects[-1], ["create"])
    assert not pace.is_scout(projects[0], ["create"])


def test_last_polls_of_one_deadline_are_spread_before_it() -> None:
    budget = Budget()
    budget.polls_per_second = 40
    pace = Pace(budget)
    polls = [pace.book_last_poll(20.0) for _ in range(80)]
    times = [poll.at for poll in polls]
    assert times[0] == 20.0
    assert min(times) == pytest.approx(20.0 - 79 / 40)
    assert len(set(times)) == 80
    pace.cancel_last_poll(polls[0])
    assert pace.book_last_poll(20.0).at == 20.0


def test_short_budget_is_logged_once_until_it_is_plentiful(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="neonctl_async.waiting.timing.pace")
    budget = Budget(polls_left=100, waits=100, per_minute=700)
    pace = Pace(budget)
    for left in (100, 50, 400, 50, 700, 50):
        budget.polls_left = left
        pace.stretch()
    assert len(caplog.records) == 2
    assert "it allows 1 polls for each wait" in caplog.records[0].getMessage()
