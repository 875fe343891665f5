"""The durations that the plan of a project records, from history and from waits."""

import msgspec
import pytest

from neonctl_async import PollPolicy
from neonctl_async.waiting.timing.forecast import UNKNOWN
from neonctl_async.waiting.tracked import TrackedOperation
from tests.support.records import PROJECT, operation
from tests.waiting.plans import OTHER, Plan, known
from tests.waiting.timing.conditions import (
    ACTION,
    learn,
    seen,
    unseen,
)
from tests.waiting.timing.test_forecast_history import records


@pytest.mark.parametrize(
    ("entries", "expected"),
    [([], False), ([unseen()], True), ([seen()], True), ([unseen("b"), seen()], True)],
)
def test_history_is_wanted_for_operations_with_an_unknown_duration(
    entries: list[TrackedOperation], expected: bool
) -> None:
    assert Plan().plan.wants_history(PROJECT, entries) is expected


def test_history_is_not_wanted_if_durations_are_known_or_were_read() -> None:
    assert not Plan(forecast=known(*[1.0] * 5)).plan.wants_history(PROJECT, [seen()])
    assert Plan(forecast=known(*[1.0] * 5)).plan.wants_history(PROJECT, [seen(action=OTHER)])
    assert not Plan(policy=PollPolicy.constant(1.0)).plan.wants_history(PROJECT, [seen()])
    plan = Plan().plan
    plan.note_history(PROJECT, [])
    assert not plan.wants_history(PROJECT, [seen()])
    assert plan.wants_history("other", [seen(project_id="other")])


def test_history_of_a_project_is_its_forecast() -> None:
    plan = Plan()
    plan.plan.note_history(PROJECT, records(*[2.0] * 5))
    plan.add(seen())
    assert plan.next_poll() == pytest.approx(2.06)


def test_history_places_the_polls_of_each_wait() -> None:
    plan = Plan()
    plan.plan.note_history(PROJECT, records(*[5.0] * 5))
    plan.add(seen("a", 0.0))
    plan.add(seen("b", 3.0))
    assert plan.poll(3.5) == pytest.approx(5.12)


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
        plan.plan.drop(entry)
    plan.forecast.update(4.0)
    prediction = plan.forecast.prediction(ACTION, PROJECT)
    assert [share.seconds for share in prediction.quantiles] == pytest.approx(
        [3.0, 3.001, 3.002, 3.003, 3.004]
    )


def test_finished_operations_refute_the_history_of_their_project() -> None:
    plan = Plan()
    plan.plan.note_history(PROJECT, records(*[9.0] * 5))
    for number in range(3):
        entry = unseen(f"op-{number}")
        note(plan, entry, 0.0, 0)
        note(plan, entry, 4.0, 3000, "finished")
    assert plan.forecast.prediction(ACTION, PROJECT) == UNKNOWN


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
        plan.plan.drop(entry)
    plan.plan.drop(unseen("never seen"))
    learn(plan.forecast, 1.0)
    prediction = plan.forecast.prediction(ACTION, PROJECT)
    assert prediction.quantiles[-1].finished == pytest.approx(11 / 21)


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


def test_poll_follows_a_new_prediction() -> None:
    plan = Plan(seen("a"), forecast=known(*[3.0] * 30))
    assert 3.0 < plan.next_poll() < 3.2
    learn(plan.forecast, *[9.0] * 300)
    plan.plan.replan()
    assert 9.0 < plan.next_poll() < 9.3
