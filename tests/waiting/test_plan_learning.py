"""The plan of a project under a short budget, its history, and the durations that it measures."""

import math

import msgspec
import pytest

from neonctl_async import PollPolicy
from neonctl_async.types import OperationAction
from neonctl_async.waiting.pace import PLENTY
from neonctl_async.waiting.prediction import UNKNOWN
from neonctl_async.waiting.tracked import TrackedOperation
from tests.support.records import PROJECT, operation
from tests.waiting.conditions import (
    ACTION,
    RateBudget,
    learn,
    plentiful,
    seen,
    unseen,
)
from tests.waiting.planned import Plan, known
from tests.waiting.test_history import records

OTHER = OperationAction.START_COMPUTE


# A short budget.


def budget_of(share: float, projects: int = 1) -> RateBudget:
    return RateBudget(share, free=10.0 * projects)


def test_plan_depends_on_a_short_budget_only() -> None:
    budget = budget_of(10.0)
    plan = Plan(seen(), pace=budget.pace())
    assert not plan.plan.is_stretched
    budget.share = 1.0
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


def test_one_poll_serves_all_waits_of_a_project_if_there_are_hardly_any() -> None:
    for stretch, expected in ((3.9, 5.12), (4.1, 7.62)):
        pace = budget_of(PLENTY / stretch).pace()
        pace.note_scout(1000.0)
        plan = Plan(seen("a"), seen("b", 2.5), pace=pace, forecast=known(*[5.0] * 10))
        assert plan.replan(2.6) == pytest.approx(expected)


def test_claimed_scout_delays_the_next_one() -> None:
    pace = budget_of(1.0).pace()
    first, second = Plan(seen(), pace=pace), Plan(seen(), pace=pace)
    assert (first.replan(0.0), second.replan(0.0)) == (1.0, 1.0)
    first.plan.claim(1.0)
    assert second.replan(1.0) > 1.5
    scouts_at = second.replan(1.0)
    first.plan.claim(3.0)  # a second time without a plan in between
    assert second.replan(1.0) == scouts_at


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


# History.


@pytest.mark.parametrize(
    ("entries", "expected"),
    [([], False), ([unseen()], False), ([seen()], True), ([unseen("b"), seen()], True)],
)
def test_history_is_wanted_for_operations_with_an_unknown_duration(
    entries: list[TrackedOperation], expected: bool
) -> None:
    assert Plan().plan.wants_history(entries) is expected


def test_history_is_not_wanted_if_durations_are_known_or_were_read() -> None:
    assert not Plan(forecast=known(*[1.0] * 5)).plan.wants_history([seen()])
    assert Plan(forecast=known(*[1.0] * 5)).plan.wants_history([seen(action=OTHER)])
    assert not Plan(policy=PollPolicy.constant(1.0)).plan.wants_history([seen()])
    plan = Plan().plan
    plan.note_history(PROJECT, [])
    assert not plan.wants_history([seen()])
    assert plan.wants_history([seen(project_id="other")])


def test_history_of_a_project_is_its_forecast() -> None:
    plan = Plan()
    plan.plan.note_history(PROJECT, records(*[2.0] * 5))
    assert plan.add(seen()) == pytest.approx(2.06)


# The durations of tracked operations.


def note(
    plan: Plan, entry: TrackedOperation, now: float, milliseconds: int, status: str = "running"
) -> None:
    record = msgspec.structs.replace(
        operation(entry.ref.id, status), total_duration_ms=milliseconds
    )
    plan.plan.note_record(entry, record, now, is_settled=status == "finished")
    entry.record = record


def test_finished_operations_become_the_forecast() -> None:
    plan = Plan()
    for number in range(5):
        entry = unseen(f"op-{number}")
        note(plan, entry, 0.0, 0)
        note(plan, entry, 2.0, 1900)
        note(plan, entry, 4.0, 3000 + number, "finished")
        plan.plan.remove(entry)
    plan.forecast.update(4.0)
    prediction = plan.forecast.prediction(ACTION, PROJECT)
    assert [share.seconds for share in prediction.shares] == pytest.approx(
        [3.0, 3.001, 3.002, 3.003, 3.004]
    )


def test_pending_operations_are_noted() -> None:
    plan = Plan(forecast=known(*[1.0] * 10))
    for number in range(10):
        entry = unseen(f"op-{number}")
        note(plan, entry, 0.0, 0)
        note(plan, entry, 5.0, 5000)
    plan.forecast.update(5.0)
    assert not plan.forecast.prediction(ACTION, PROJECT).is_complete


def test_removed_operations_took_longer_than_they_were_polled() -> None:
    plan = Plan(forecast=known(*[1.0] * 10))
    for number in range(10):
        entry = unseen(f"op-{number}")
        note(plan, entry, 0.0, 0)
        note(plan, entry, 5.0, 5000)
        plan.plan.remove(entry)
    plan.plan.remove(unseen("never seen"))
    learn(plan.forecast, 1.0)
    prediction = plan.forecast.prediction(ACTION, PROJECT)
    assert prediction.shares[-1].finished == pytest.approx(11 / 21)


def test_start_of_an_operation_is_that_of_its_first_record() -> None:
    plan = Plan()
    entry = unseen(started_at=10.0)
    note(plan, entry, 10.0, 3500)
    assert entry.started_at == 6.5
    note(plan, entry, 12.0, 5500)
    assert entry.started_at == 6.5


def test_operation_that_is_finished_at_first_has_no_known_duration() -> None:
    plan = Plan()
    for number in range(10):
        note(plan, unseen(f"op-{number}"), 5.0, 3000, "finished")
    plan.forecast.update(5.0)
    assert plan.forecast.prediction(ACTION, PROJECT) == UNKNOWN
