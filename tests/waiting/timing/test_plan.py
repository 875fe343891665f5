"""The plan of a project, with times from the test. The tests of the poller cover its effect."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neonctl_async.waiting.timing.placement import CROWD

from neonctl_async import PollPolicy
from neonctl_async.waiting.timing.forecast import Forecast
from neonctl_async.waiting.timing.pace import AMPLE, MAX_STRETCH
from neonctl_async.waiting.timing.plan import (
    LAST_POLL_MARGIN,
    MIN_POLL_GAP,
    MIN_POLL_SHARE,
    MIN_POLL_SHARE_OF_CROWD,
    ProjectPlan,
    random_draw,
)
from neonctl_async.waiting.tracked import TrackedOperation
from tests.waiting.timing.conditions import (
    RateBudget,
    add_queue,
    plentiful,
    seen,
    unseen,
)
from tests.waiting.timing.plans import POLICY, Plan, known

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


def test_gap_between_first_polls_doubles_up_to_the_first_delay_of_the_policy() -> None:
    plan = Plan(unseen("a"))
    polled_at = [0.0]
    for number in range(8):
        plan.plan.start_poll(polled_at[-1])
        polled_at.append(plan.add(unseen(f"b-{number}", polled_at[-1])))
    gaps = [second - first for first, second in pairwise(polled_at)]
    assert gaps == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0])


def test_gap_between_first_polls_is_short_again_after_another_poll() -> None:
    plan = Plan(unseen("a"))
    for number in range(8):
        plan.plan.start_poll(float(number))
        plan.add(unseen(f"b-{number}", float(number)))
    plan.plan.start_poll(8.0)
    plan.plan.start_poll(9.0)
    assert plan.add(unseen("c", 9.0)) == 9.0 + MIN_POLL_GAP


def after_first_polls() -> tuple[Plan, float]:
    """Return a plan after many first polls in a row, and the time of the newest one."""
    plan = Plan(unseen("a"))
    polled_at = 0.0
    for number in range(8):
        plan.plan.start_poll(polled_at)
        polled_at = plan.add(unseen(f"b-{number}", polled_at))
    plan.plan.start_poll(polled_at)
    return plan, polled_at


def test_reference_with_a_deadline_is_polled_before_it_although_other_waits_join() -> None:
    plan, polled_at = after_first_polls()
    deadline = polled_at + 0.5
    last_poll_at = pytest.approx(deadline - LAST_POLL_MARGIN)
    assert plan.add(unseen("c", polled_at), deadline) == last_poll_at
    plan.plan.finish_poll(0.0)
    assert plan.replan(polled_at + 0.1) == last_poll_at


def test_reference_with_a_deadline_too_close_for_a_gap_is_polled_at_once() -> None:
    plan, polled_at = after_first_polls()
    plan.plan.finish_poll(0.4)  # the last poll would come 0.8 s before the deadline
    joined_at = polled_at + 0.2
    assert plan.add(unseen("c", joined_at), joined_at + 0.7) == joined_at
    assert plan.replan(joined_at) == joined_at
    assert plan.poll(joined_at, seconds=0.4) > joined_at + 0.7


def test_waits_that_join_delay_neither_a_last_poll_nor_the_poll_of_a_failure() -> None:
    plan, polled_at = after_first_polls()
    failed = seen("failed", polled_at)
    failed.failure_final_at = polled_at + 0.6
    plan.add(failed)
    plan.add(seen("c", polled_at), deadline=polled_at + 0.5)
    plan.add(unseen("d", polled_at))
    assert plan.replan(polled_at) == pytest.approx(polled_at + 0.5 - LAST_POLL_MARGIN)
    assert plan.replan(polled_at + 0.46) == pytest.approx(polled_at + 0.6)


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


# The gap between two polls.


def many(count: int, started_at: float = 0.0) -> list[TrackedOperation]:
    return [seen(f"op-{n}", started_at) for n in range(count)]


@pytest.mark.parametrize(
    ("waits", "share", "gap"),
    [
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
        entry.started_at = -n / 25
    assert plan.poll(4.0) == pytest.approx(4.0 + gap, abs=0.06)


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


@pytest.mark.parametrize(
    ("reports_each", "expected"), [(False, 1.5), (True, 1.2)], ids=["whole wait", "each"]
)
def test_failure_needs_no_earlier_poll_while_its_wait_needs_others(
    *, reports_each: bool, expected: float
) -> None:
    failed, other = seen("a", 0.0), seen("b", 0.5)
    plan = Plan()
    plan.entries = [failed, other]
    add_queue(failed, other, reports_each=reports_each)
    failed.failure_final_at = 1.2
    assert plan.replan(1.0) == expected
    add_queue(failed)
    assert plan.replan(1.0) == 1.2


def test_404_is_confirmed_at_the_end_of_its_grace() -> None:
    entry = seen()
    plan = Plan(entry)
    entry.missing_final_at = 4.0
    assert plan.poll(1.0) == 3.0
    assert plan.poll(3.0) == 4.0


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
