"""The plan of a project while the rate budget is short."""

import math

import pytest

from neonctl_async import PollPolicy
from neonctl_async.waiting.timing.pace import PLENTY
from neonctl_async.waiting.timing.placement import ORDER_SECONDS
from tests.waiting.timing.conditions import (
    RateBudget,
    plentiful,
    seen,
)
from tests.waiting.timing.plans import Plan, known


def budget_of(share: float, projects: int = 1) -> RateBudget:
    return RateBudget(share, free=10.0 * projects)


def test_plan_depends_on_a_short_budget_only() -> None:
    budget = budget_of(10.0)
    assert Plan(pace=budget.pace()).plan.is_stretched is False
    plan = Plan(seen(), pace=budget.pace())
    assert not plan.plan.is_stretched
    budget.share = 0.9 * PLENTY
    plan.replan(0.1)
    assert plan.plan.is_stretched
    budget.share = 10.0
    plan.replan(0.1)
    assert not plan.plan.is_stretched


def test_constant_interval_is_not_stretched() -> None:
    plan = Plan(seen(), policy=PollPolicy.constant(2.0), pace=budget_of(0.1).pace())
    assert plan.plan.next_poll_at == 2.0
    assert not plan.plan.is_stretched


def test_gap_is_stretched_too() -> None:
    pace = budget_of(PLENTY / 2).pace()
    pace.note_scout(1000.0)
    plan = Plan(seen(), pace=pace, forecast=known(*[1.0] * 10))
    assert plan.poll(0.5) == 0.5 + 2 * 1.0  # and not at the mark


def test_confirmation_of_a_failure_comes_later_too() -> None:
    entry = seen()
    plan = Plan(entry, pace=budget_of(PLENTY / 3).pace())
    entry.polled_at, entry.failure_final_at = 2.0, 3.0
    assert plan.replan(2.0) == 2.0 + 3 * 1.0
    assert plan.plan.is_stretched


def test_one_poll_serves_all_waits_of_a_project_if_there_are_hardly_any() -> None:
    for share, expected in ((PLENTY / 3.9, 5.12), (PLENTY / 4.1, 7.62)):
        pace = budget_of(share).pace()
        pace.note_scout(1000.0)
        plan = Plan(seen("a"), seen("b", 2.5), pace=pace, forecast=known(*[5.0] * 10))
        assert plan.replan(2.6) == pytest.approx(expected)


def test_claimed_scout_delays_the_next_one() -> None:
    pace = RateBudget(share=1.0, free=100.0).pace()
    first, second = Plan(seen(), pace=pace), Plan(seen(), pace=pace)
    assert (first.replan(0.0), second.replan(0.0)) == (1.0, 1.0)
    first.plan.claim(1.0)
    assert second.replan(1.0) == 2.0
    first.plan.claim(3.0)  # a second time without a plan in between
    assert second.replan(1.0) == 2.0


def test_new_plan_claims_nothing() -> None:
    pace = plentiful()
    pace.note_waits(0, 1)
    Plan(pace=pace).plan.claim(5.0)
    assert pace.scout_at(1.0, 5.0) == -math.inf


def test_scout_is_polled_after_projects_with_fewer_polls() -> None:
    pace = RateBudget(share=1.0, free=100.0).pace()
    plan = Plan(seen(), pace=pace)
    others = Plan(seen("b"), pace=pace)
    for polls in range(1, 4):
        plan.plan.start_poll(-100.0)
        difference = plan.replan(0.0) - others.replan(0.0)
        assert difference == pytest.approx(polls * ORDER_SECONDS)


def test_poll_that_is_no_scout_claims_nothing() -> None:
    pace = plentiful()
    pace.note_waits(0, 1)
    plan = Plan(seen(), pace=pace)
    plan.plan.claim(5.0)
    assert pace.scout_at(1.0, 5.0) == -math.inf


def test_projects_scout_one_after_the_other() -> None:
    pace = RateBudget(share=1.0, free=100.0).pace()
    plans = [Plan(seen(), pace=pace) for _ in range(3)]
    polls = [0, 0, 0]
    for _ in range(30):
        times = [plan.replan(0.0) for plan in plans]
        chosen = times.index(min(times))
        plans[chosen].plan.claim(times[chosen])
        plans[chosen].poll(times[chosen])
        polls[chosen] += 1
        assert max(polls) - min(polls) <= 2


def test_waits_are_reported_to_the_pace() -> None:
    budget = RateBudget()
    pace = budget.pace()
    first, second = Plan(pace=pace), Plan(pace=pace)
    first.plan.note_waits(2)
    second.plan.note_waits(1)
    assert budget.pending == (3, 2)
    first.plan.note_waits(0)
    assert budget.pending == (1, 1)
