"""The plan of a project, with times from the test. The tests of the poller cover its effect."""

import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import PollPolicy
from neonctl_async.types import OperationAction
from neonctl_async.waiting.forecast import Forecast
from neonctl_async.waiting.pace import AMPLE, MAX_STRETCH, Pace
from neonctl_async.waiting.placement import CROWD
from neonctl_async.waiting.plan import (
    LAST_POLL_MARGIN,
    MIN_POLL_GAP,
    MIN_POLL_SHARE,
    MIN_POLL_SHARE_OF_CROWD,
    ProjectPlan,
    random_draw,
)
from neonctl_async.waiting.prediction import UNKNOWN
from neonctl_async.waiting.tracked import TrackedOperation
from tests.support.records import PROJECT, operation
from tests.waiting.conditions import (
    ACTION,
    RateBudget,
    add_queue,
    learn,
    plentiful,
    seen,
    unseen,
)
from tests.waiting.test_history import records

POLICY = PollPolicy(initial=1.0, growth=2.0, maximum=10.0, jitter=0.0)
OTHER = OperationAction.START_COMPUTE


class Plan:
    """A plan whose polls take no time, and the operations that it is for."""

    def __init__(
        self,
        *entries: TrackedOperation,
        deadline: float = math.inf,
        policy: PollPolicy = POLICY,
        pace: Pace | None = None,
        forecast: Forecast | None = None,
    ) -> None:
        self.forecast = forecast or Forecast()
        self.pace = pace or plentiful()
        self.plan = ProjectPlan(policy, self.forecast, self.pace, draw=lambda: 0.5)
        self.entries: list[TrackedOperation] = []
        self.plan.note_waits(len(entries))
        for entry in entries:
            self.add(entry, deadline)

    def add(self, entry: TrackedOperation, deadline: float = math.inf) -> float:
        """Add an operation at its start with a wait for it alone. Return the time of the poll."""
        self.plan.add(entry, add_queue(entry, deadline=deadline), entry.started_at)
        self.entries.append(entry)
        return self.plan.next_poll_at

    def poll(self, now: float, seconds: float = 0.0) -> float:
        """Poll all operations, and return the time of the next poll."""
        self.plan.start_poll(now)
        for entry in self.entries:
            entry.polled_at = now + seconds
        self.plan.finish_poll(seconds)
        return self.replan(now + seconds)

    def replan(self, now: float) -> float:
        self.plan.replan(self.entries, now)
        return self.plan.next_poll_at


# The next poll.


def test_no_poll_is_planned_without_operations() -> None:
    plan = Plan()
    assert plan.plan.next_poll_at == math.inf
    assert plan.replan(1.0) == math.inf


def test_reference_is_polled_at_once() -> None:
    assert Plan(unseen()).plan.next_poll_at == 0.0


def test_operation_with_a_record_is_polled_after_the_first_delay() -> None:
    assert Plan(seen()).plan.next_poll_at == 1.0


def test_each_delay_is_longer_than_the_one_before() -> None:
    plan = Plan(seen())
    polled_at = [1.0]
    for _ in range(5):
        polled_at.append(plan.poll(polled_at[-1]))
    assert polled_at == pytest.approx([1.0, 3.0, 7.0, 15.0, 23.0, 33.0])


def test_start_of_a_poll_ends_the_plan() -> None:
    plan = Plan(unseen())
    plan.plan.start_poll(0.0)
    assert plan.plan.next_poll_at == math.inf


def test_reference_added_during_a_poll_is_polled_shortly_after_its_start() -> None:
    plan = Plan(unseen("a"))
    plan.plan.start_poll(0.0)
    assert plan.add(unseen("b", 0.01)) == MIN_POLL_GAP
    assert plan.replan(0.02) == MIN_POLL_GAP
    assert plan.replan(0.2) == 0.2
    assert plan.poll(0.2) == pytest.approx(1.39)  # all of them have been polled


def test_reference_added_long_after_a_poll_is_polled_at_once() -> None:
    plan = Plan(unseen("a"))
    plan.plan.start_poll(0.0)
    assert plan.add(unseen("b", 5.0)) == 5.0


def test_new_operation_never_delays_the_next_poll() -> None:
    plan = Plan(seen("a"))
    plan.poll(3.0)
    assert plan.plan.next_poll_at == 7.0
    assert plan.add(seen("b", 3.5)) == 4.5
    assert plan.add(seen("c", 4.0)) == 4.5


def test_new_operation_is_polled_no_sooner_than_one_delay_after_the_newest_poll() -> None:
    plan = Plan(forecast=known(*[0.2] * 10))
    plan.plan.start_poll(3.0)
    assert plan.add(seen("b", 3.5)) == 4.0


def test_poll_follows_the_youngest_operation_without_history() -> None:
    plan = Plan(seen("a", 0.0), seen("b", 20.0))
    assert plan.poll(21.0) == 23.0


def test_each_operation_is_polled_by_its_own_forecast() -> None:
    plan = Plan(seen("a", 0.0), seen("b", 3.0), forecast=known(*[5.0] * 10))
    assert plan.poll(3.5) == pytest.approx(5.12)
    assert plan.poll(5.2) == pytest.approx(6.28)  # the first one takes longer than expected


def test_operations_of_one_wait_are_polled_when_the_last_one_finishes() -> None:
    first, second = seen("a", 0.0), seen("b", 3.0)
    plan = Plan(forecast=known(*[5.0] * 10))
    plan.entries = [first, second]
    add_queue(first, second)
    assert plan.poll(3.5) == pytest.approx(8.12)


def test_wait_that_reports_each_operation_is_polled_when_the_first_one_finishes() -> None:
    first, second = seen("a", 0.0), seen("b", 3.0)
    plan = Plan(forecast=known(*[5.0] * 10))
    plan.entries = [first, second]
    add_queue(first, second, reports_each=True)
    assert plan.poll(3.5) == pytest.approx(5.12)


def known(*seconds: float) -> Forecast:
    forecast = Forecast()
    learn(forecast, *seconds)
    return forecast


# The gap between two polls.


def many(count: int, started_at: float = 0.0) -> list[TrackedOperation]:
    return [seen(f"op-{n}", started_at) for n in range(count)]


@pytest.mark.parametrize(
    ("waits", "share", "gap"),
    [
        (1, math.inf, 0.1),
        (2, 10.0, MIN_POLL_SHARE * 4.0),
        (CROWD, 0.9 * AMPLE, MIN_POLL_SHARE * 4.0),
        (CROWD, AMPLE, MIN_POLL_SHARE_OF_CROWD * 4.0),
        (2 * CROWD, AMPLE, MIN_POLL_SHARE_OF_CROWD * 4.0),
        (CROWD // 2, AMPLE, (MIN_POLL_SHARE + MIN_POLL_SHARE_OF_CROWD) / 2 * 4.0),
    ],
)
def test_marks_of_many_waits_share_polls(waits: int, share: float, gap: float) -> None:
    policy = PollPolicy(initial=0.1, growth=2.0, maximum=10.0, jitter=0.0)
    forecast = known(*[4.0 + n / 25 for n in range(100)])
    entries = many(waits)
    plan = Plan(*entries, policy=policy, pace=RateBudget(share).pace(), forecast=forecast)
    # A mark every 0.04 s: the gap alone decides.
    for n, entry in enumerate(entries):
        entry.started_at = -n / 25 if n else 0.0
    first = plan.poll(4.0)
    assert first >= 4.0 + gap - 1e-9


@pytest.mark.parametrize(
    ("age", "jitter", "gap"), [(2.0, 0.2, 0.8), (20.0, 0.2, 2.4), (500.0, 0.2, 8.0), (500.0, 0, 10)]
)
def test_gap_grows_with_the_age_of_the_youngest_operation_within_limits(
    age: float, jitter: float, gap: float
) -> None:
    policy = PollPolicy(initial=1.0, growth=2.0, maximum=10.0, jitter=jitter)
    forecast = known(*[age + n / 1000 for n in range(5)])
    pace = RateBudget(AMPLE / 2).pace()
    plan = Plan(seen("old", -0.001), seen("a"), policy=policy, pace=pace, forecast=forecast)
    # Both would be polled at once.
    assert plan.poll(age) == pytest.approx(age + gap)


# The first and the last poll of a wait.


def test_last_poll_comes_before_the_deadline_by_twice_the_duration_of_a_poll() -> None:
    plan = Plan(seen(), deadline=0.5)
    assert plan.plan.next_poll_at == pytest.approx(0.5 - LAST_POLL_MARGIN)
    assert plan.plan.last_poll_margin == LAST_POLL_MARGIN
    assert plan.poll(0.1, seconds=0.1) == pytest.approx(0.3)
    assert plan.plan.last_poll_margin == 0.2
    plan.plan.start_poll(0.3)  # the duration of the poll before is the best guess
    assert plan.plan.last_poll_margin == 0.2


def test_last_poll_is_not_repeated() -> None:
    plan = Plan(seen(), deadline=0.5)
    assert plan.poll(0.45) == pytest.approx(1.9)
    assert plan.replan(0.47) == pytest.approx(1.9)


def test_last_polls_of_close_deadlines_are_one_poll() -> None:
    first, second = seen("a"), seen("b")
    plan = Plan(first, deadline=0.5)
    plan.add(second, deadline=0.52)
    assert plan.plan.next_poll_at == pytest.approx(0.45)
    assert plan.poll(0.45) == pytest.approx(0.45 + MIN_POLL_GAP)


def test_operation_with_a_new_failure_is_polled_at_the_end_of_its_grace() -> None:
    entry = seen()
    entry.failure_final_at = 0.7
    plan = Plan(entry)
    assert plan.plan.next_poll_at == 0.7
    assert plan.replan(0.1) == 0.7


def test_new_failure_does_not_delay_other_operations() -> None:
    failed = seen("a", 0.0)
    plan = Plan(failed, seen("b", 0.5))
    failed.failure_final_at = 9.0
    assert plan.replan(1.0) == 1.5
    failed.failure_final_at = 1.2
    assert plan.replan(1.0) == 1.2


def test_404_is_confirmed_at_the_end_of_its_grace() -> None:
    entry = seen()
    plan = Plan(entry)
    entry.missing_final_at = 4.0
    assert plan.poll(1.0) == 3.0
    assert plan.poll(3.0) == 4.0


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
    pace = budget_of(2.5).pace()
    pace.note_scout(1000.0)
    plan = Plan(seen(), pace=pace, forecast=known(*[1.0] * 10))
    assert plan.poll(0.5) == 0.5 + 2 * 1.0  # and not at the mark


def test_one_poll_serves_all_waits_of_a_project_if_there_are_hardly_any() -> None:
    for share, expected in ((1.26, 5.12), (1.24, 7.62)):
        pace = budget_of(share).pace()
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


def test_projects_take_turns_as_scouts() -> None:
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


def test_operation_that_is_finished_at_first_says_nothing() -> None:
    plan = Plan()
    for number in range(10):
        note(plan, unseen(f"op-{number}"), 5.0, 3000, "finished")
    plan.forecast.update(5.0)
    assert plan.forecast.prediction(ACTION, PROJECT) == UNKNOWN


# Laws.


def test_random_draws_are_between_0_and_1() -> None:
    draws = [random_draw() for _ in range(1000)]
    assert 0 <= min(draws) < 0.1
    assert 0.9 < max(draws) <= 1


def test_each_poll_has_a_draw() -> None:
    draws = iter([0.0, 0.5, 1.0])
    policy = PollPolicy(initial=1.0, growth=2.0, maximum=10.0, jitter=0.5)
    plan = ProjectPlan(policy, Forecast(), plentiful(), lambda: next(draws))
    entry = seen()
    plan.add(entry, add_queue(entry), 0.0)
    assert plan.next_poll_at == 0.5
    for expected in (1.0, 1.5):
        plan.start_poll(0.0)
        plan.replan([entry], 0.0)
        assert plan.next_poll_at == expected


@given(
    st.lists(st.tuples(st.floats(0, 50), st.booleans()), min_size=1, max_size=8),
    st.lists(st.floats(0.1, 60), max_size=12),
    st.floats(0.01, 30),
)
def test_project_is_polled_again_and_again(
    operations: list[tuple[float, bool]], seconds: list[float], share: float
) -> None:
    budget = RateBudget(share)
    entries = [seen(f"op-{n}", start) for n, (start, _) in enumerate(operations)]
    plan = Plan(pace=budget.pace(), forecast=known(*seconds))
    plan.pace.note_scout(1e9)  # others scout
    for entry, (_, reports_each) in zip(entries, operations, strict=True):
        add_queue(entry, reports_each=reports_each)
    plan.entries = entries
    plan.plan.note_waits(len(entries))
    polled_at = [plan.poll(50.0)]
    for _ in range(10):
        polled_at.append(plan.poll(polled_at[-1]))
    stretch = max(plan.pace.stretch(), 1.0)
    assert stretch <= MAX_STRETCH
    for earlier, later in pairwise([50.0, *polled_at]):
        assert 0 < later - earlier <= POLICY.maximum * stretch + 1e-6
