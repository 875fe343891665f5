"""The poll of one wait, with times, histories and budgets from the test."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import PollPolicy
from neonctl_async.types import OperationAction
from neonctl_async.waiting.timing.forecast import Forecast
from neonctl_async.waiting.timing.pace import AMPLE, MAX_STRETCH, Pace
from neonctl_async.waiting.timing.placement import (
    CROWD,
    HURRY,
    ORDER_SECONDS,
    PATIENCE,
    Conditions,
    Placed,
    Placement,
)
from neonctl_async.waiting.timing.schedule import delay
from neonctl_async.waiting.tracked import TrackedOperation
from tests.waiting.timing.conditions import ACTION, RateBudget, learn, plentiful, seen, unseen

POLICY = PollPolicy(initial=0.25, growth=1.5, maximum=5.0, jitter=0.2)
OTHER = OperationAction.START_COMPUTE
DRAW = 0.5
"""A random number that changes no delay."""


def conditions(
    earliest: float = -math.inf, *, jitter: float = DRAW, polls: int = 0, stretch: float = 1.0
) -> Conditions:
    return Conditions(earliest, jitter, polls, stretch)


def known(*seconds: float) -> Forecast:
    """Return a forecast after operations of these durations."""
    forecast = Forecast()
    learn(forecast, *seconds)
    return forecast


def placement(
    forecast: Forecast | None = None, pace: Pace | None = None, policy: PollPolicy = POLICY
) -> Placement:
    return Placement(policy, forecast or Forecast(), pace or plentiful())


def short(projects: int = 1, *, scouted_at: float = 0.0) -> Pace:
    """Return the pace of a short budget, whose newest scout was polled at ``scouted_at``."""
    pace = RateBudget(share=1.0, free=100.0).pace()
    for _ in range(projects):
        pace.note_waits(0, 1)
    pace.note_scout(scouted_at)
    return pace


def polled(entry: TrackedOperation, at: float) -> TrackedOperation:
    entry.polled_at = at
    return entry


# A plentiful budget.


@pytest.mark.parametrize("polled_at", [0.0, 0.25, 3.0, 100.0])
@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
def test_delay_without_history_grows_with_the_age_at_the_newest_poll(
    polled_at: float, jitter: float
) -> None:
    entry = polled(seen(started_at=0.0), polled_at)
    placed = placement().place([entry], conditions(jitter=jitter))
    assert placed == Placed(polled_at + delay(POLICY, polled_at, jitter), is_scout=False)


def test_delay_follows_the_youngest_operation_and_the_newest_poll() -> None:
    entries = [polled(seen("a", 0.0), 8.0), polled(seen("b", 6.0), 7.0), seen("c", 2.0)]
    assert placement().place(entries, conditions()).at == 8.0 + delay(POLICY, 8.0 - 6.0, DRAW)


def test_poll_comes_when_such_operations_finish() -> None:
    entry = seen(started_at=10.0)
    assert placement(known(*[3.0] * 10)).place([entry], conditions()).at == pytest.approx(13.08)
    polled(entry, 12.5)
    assert placement(known(*[3.0] * 10)).place([entry], conditions()).at == pytest.approx(13.08)
    assert placement(known(*[3.0] * 4)).place([entry], conditions()).at == 12.5 + delay(
        POLICY, 2.5, DRAW
    )


def test_poll_comes_when_the_last_operation_finishes() -> None:
    forecast = known(*[3.0] * 10)
    learn(forecast, *[1.0] * 10, action=OTHER)
    longer, later = seen("a", 0.0), seen("b", 1.0, action=OTHER)
    # The mark is relative to the youngest operation: 2 s after its start.
    assert placement(forecast).place([longer, later], conditions()).at == pytest.approx(3.06)
    latest = seen("c", 2.5, action=OTHER)
    entries = [longer, latest, later]
    assert placement(forecast).place(entries, conditions()).at == pytest.approx(2.5 + 1.04)


def test_more_operations_of_an_action_finish_later() -> None:
    forecast = known(*[n / 25 for n in range(1, 101)])
    first, second = seen("a"), seen("b")
    assert placement(forecast).place([first], conditions()).at == pytest.approx(1.0 + 0.04)
    assert placement(forecast).place([first, second], conditions()).at == pytest.approx(2.0 + 0.06)


def test_operation_without_a_record_has_no_forecast() -> None:
    forecast = known(*[3.0] * 10)
    at = placement(forecast).place([seen("a"), unseen("b")], conditions()).at
    assert at == delay(POLICY, 0.0, DRAW)


def test_constant_interval_ignores_the_forecast() -> None:
    policy = PollPolicy.constant(2.0)
    at = placement(known(*[0.5] * 10), policy=policy).place([seen()], conditions()).at
    assert at == 2.0


def test_project_is_not_polled_before_the_earliest_time() -> None:
    entry = polled(seen(), 1.0)
    assert placement().place([entry], conditions(earliest=4.0)).at == 4.0
    assert placement().place([entry], conditions(earliest=0.5)).at == 1.75
    forecast = known(*[1.0, 2.0, 3.0, 4.0] * 5)
    assert placement(forecast).place([seen()], conditions(earliest=1.5)).at == pytest.approx(2.06)


# Many operations.


@pytest.mark.parametrize(
    ("count", "share", "factor"),
    [(CROWD, AMPLE, HURRY), (CROWD - 1, AMPLE, 1.0), (CROWD, 0.9 * AMPLE, 1.0)],
)
def test_wait_for_many_operations_is_polled_more_often_if_the_budget_is_ample(
    count: int, share: float, factor: float
) -> None:
    place = placement(pace=RateBudget(share).pace()).place
    entries = [polled(seen(f"op-{n}"), 4.0) for n in range(count)]
    assert place(entries, conditions()).at == 4.0 + factor * delay(POLICY, 4.0, DRAW)
    minimum = 4.0 * factor
    assert place(entries, conditions(earliest=8.0)).at == pytest.approx(4.0 + minimum)
    # Few operations are left, which the caller has waited for just as long.
    assert place(entries[:2], conditions()).at == 4.0 + factor * delay(POLICY, 4.0, DRAW)


# A short budget.


def test_first_project_is_a_scout_and_others_wait_for_its_result() -> None:
    pace = short(scouted_at=-math.inf)
    scout = placement(pace=pace).place([seen("a")], conditions(stretch=5.0))
    assert scout == Placed(0.25, is_scout=True)
    pace.note_scout(0.25)
    place = placement(pace=pace).place([seen("b", 0.1)], conditions(stretch=5.0))
    assert place.is_scout
    assert place.at == pytest.approx(0.5)  # one scout at a time, with the delay of one project


def test_scout_goes_beyond_the_age_at_which_others_were_pending() -> None:
    pace = short(scouted_at=-math.inf)
    placement(pace=pace).place([polled(seen("a"), 2.0)], conditions(stretch=5.0))
    later = placement(pace=pace).place([seen("b", 1.0)], conditions(stretch=5.0))
    assert later == Placed(1.0 + 2.0 + delay(POLICY, 2.0, DRAW), is_scout=True)
    other_kind = seen("c", 1.0, action=OTHER)
    placed = placement(pace=pace).place([other_kind], conditions(stretch=5.0))
    assert placed == Placed(1.0 + 0.25, is_scout=True)


def test_kind_of_a_wait_is_the_set_of_its_actions() -> None:
    pace = short(scouted_at=-math.inf)
    first = [polled(seen("a"), 2.0), polled(seen("b", action=OTHER), 2.0)]
    placement(pace=pace).place(first, conditions(stretch=5.0))
    second = [seen("c", 1.0, action=OTHER), seen("d", 1.0), seen("e", 1.0)]
    at = placement(pace=pace).place(second, conditions(stretch=5.0)).at
    assert at == 1.0 + 2.0 + delay(POLICY, 2.0, DRAW)


@pytest.mark.parametrize("seconds", [(), [4.0] * 10])
@pytest.mark.parametrize("scouted_at", [-math.inf, 2.0])
def test_project_with_fewer_polls_becomes_the_scout(
    seconds: Sequence[float], scouted_at: float
) -> None:
    place = placement(known(*seconds), short(100, scouted_at=scouted_at)).place
    first = place([seen()], conditions(stretch=5.0))
    later = place([seen()], conditions(polls=3, stretch=5.0))
    assert first.is_scout
    assert later == Placed(first.at + 3 * ORDER_SECONDS, is_scout=True)


def test_project_that_is_no_scout_waits_patiently_for_known_durations() -> None:
    pace = short(scouted_at=1000.0)
    placed = placement(pace=pace).place([seen()], conditions(stretch=3.0))
    assert placed == Placed(3.0 * PATIENCE, is_scout=False)
    placed = placement(pace=pace).place([polled(seen(), 2.0)], conditions(stretch=3.0))
    assert placed.at == 2.0 + 3.0 * delay(POLICY, 2.0, DRAW)  # the stretched delay is longer
    placed = placement(pace=pace).place([polled(seen(), 2.0)], conditions(stretch=1.5))
    assert placed.at == 2.0 + 1.5 * delay(POLICY, 2.0, DRAW)


def test_patience_has_a_limit() -> None:
    pace = short(scouted_at=1000.0)
    pace.note_pending((ACTION,), 500.0)
    placed = placement(pace=pace).place([seen()], conditions(stretch=3.0))
    assert placed == Placed(3.0 * POLICY.maximum, is_scout=False)


def test_young_wait_is_patient_until_the_age_at_which_others_were_pending() -> None:
    pace = short(scouted_at=1000.0)
    pace.note_pending((ACTION,), 8.0)
    placed = placement(pace=pace).place([seen("b")], conditions(stretch=2.0))
    assert placed.at == 8.0 + delay(POLICY, 8.0, DRAW)


def test_scout_does_not_come_before_the_earliest_time() -> None:
    placed = placement(pace=short(scouted_at=-math.inf)).place(
        [seen()], conditions(earliest=0.75, stretch=5.0)
    )
    assert placed == Placed(0.75, is_scout=True)


def test_known_durations_are_explored_by_few_projects() -> None:
    forecast = known(*[4.0] * 10)
    entry = seen()
    placed = placement(forecast, short(100, scouted_at=2.0)).place([entry], conditions(stretch=5.0))
    assert placed == Placed(2.0 + 0.25, is_scout=True)
    placed = placement(forecast, short(100, scouted_at=2.0)).place(
        [entry], conditions(polls=9, stretch=5.0)
    )
    assert placed == Placed(2.0 + 0.25 + 9 * ORDER_SECONDS, is_scout=True)
    placed = placement(forecast, short(1, scouted_at=2.0)).place([entry], conditions(stretch=5.0))
    assert placed == Placed(4.1, is_scout=False)
    placed = placement(forecast, short(100, scouted_at=-math.inf)).place(
        [polled(entry, 1.0)], conditions(stretch=5.0)
    )
    assert placed == Placed(1.75, is_scout=True)
    placed = placement(forecast, short(100, scouted_at=-math.inf)).place(
        [polled(entry, 1.0)], conditions(earliest=3.0, stretch=5.0)
    )
    assert placed == Placed(3.0, is_scout=True)


def test_estimated_end_needs_scouts_but_no_patience() -> None:
    forecast = Forecast()
    pending = [forecast.observe("p", ACTION, 0.0) for _ in range(20)]
    for observation in pending:
        assert observation is not None
        forecast.note_pending(observation, 3.0)
    learn(forecast, 1.0, 1.05, 1.1, 1.15, 1.2)
    prediction = forecast.prediction(ACTION, "p")
    assert prediction.shares
    assert not prediction.is_complete
    entry = polled(seen(), 3.1)
    placed = placement(forecast, short(scouted_at=-math.inf)).place(
        [entry], conditions(stretch=5.0)
    )
    assert placed == Placed(3.1 + delay(POLICY, 3.1, DRAW), is_scout=True)
    mark = placement(forecast, short(scouted_at=1000.0)).place([entry], conditions(stretch=20.0))
    assert 10.5 < mark.at < 11.0  # 3 s for a fifth of them, from 1 s on: 11 s for all
    assert not mark.is_scout


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.floats(0, 100), st.sampled_from([ACTION, OTHER])),
        min_size=1,
        max_size=10,
    ),
    st.lists(st.floats(0, 200), max_size=20),
    st.floats(0, 1),
    st.floats(1, MAX_STRETCH),
    st.integers(0, 100),
    st.floats(0, 100),
)
def test_no_wait_starves(
    operations: list[tuple[float, float, OperationAction]],
    seconds: list[float],
    jitter: float,
    stretch: float,
    polls: int,
    scouted_age: float,
) -> None:
    entries = [
        polled(seen(f"op-{n}", start, action=action), start + waited)
        for n, (start, waited, action) in enumerate(operations)
    ]
    pace = short(scouted_at=1000.0)
    kind = tuple(sorted({str(action) for *_, action in operations}))
    pace.note_pending(kind, scouted_age)
    newest = max(entry.polled_at for entry in entries)
    at = (
        placement(known(*seconds), pace)
        .place(entries, conditions(newest, jitter=jitter, polls=polls, stretch=stretch))
        .at
    )
    assert newest < at <= newest + POLICY.maximum * stretch + 1e-9
