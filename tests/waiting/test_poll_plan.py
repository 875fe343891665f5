"""The times of the polls of a project, with times from the test and without an event loop."""

import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import PollPolicy
from neonctl_async.waiting.poll_plan import duration
from neonctl_async.waiting.timing.forecast import Observation
from neonctl_async.waiting.timing.pace import CROWD, SCOUTS, Pace
from tests.support.records import operation
from tests.waiting.plans import POLICY, Plan, known
from tests.waiting.timing.conditions import Budget, seen, unseen


def spread(first: float, last: float, count: int = 16) -> list[float]:
    """Return durations that are evenly spread."""
    return [first + (last - first) * (n + 0.5) / count for n in range(count)]


def test_nothing_is_polled_without_a_wait() -> None:
    assert Plan().next_poll() == math.inf


def test_operation_of_unknown_duration_is_polled_with_growing_delays() -> None:
    assert Plan(seen()).polls_until(40.0) == [1.0, 3.0, 7.0, 15.0, 25.0, 35.0]


def test_age_of_an_operation_counts_and_not_the_time_of_its_wait() -> None:
    plan = Plan()
    entry = seen(started_at=-6.0)
    entry.polled_at = 0.0
    plan.add(entry, now=0.0)
    assert plan.next_poll() == 7.0


def test_reference_without_a_record_is_polled_at_once() -> None:
    plan = Plan(unseen())
    assert plan.next_poll() == 0.0
    assert plan.poll(0.0) == 1.0


def test_references_that_follow_one_another_share_a_poll_after_a_gap() -> None:
    plan = Plan(unseen("a"))
    plan.read(0.0)
    plan.add(unseen("b", 0.1))
    plan.add(unseen("c", 0.2))
    assert plan.next_poll(0.2) == 0.42


def test_operation_of_known_duration_is_polled_when_it_probably_finishes() -> None:
    plan = Plan(seen(), forecast=known(*[4.0] * 16))
    assert plan.next_poll() == pytest.approx(4.1)


def test_operation_that_takes_longer_than_all_others_is_polled_with_new_growing_delays() -> None:
    plan = Plan(seen(), forecast=known(*[4.0] * 16))
    after = [at - 4.0 for at in plan.polls_until(15.0)]
    # From 4 s on, each delay is one second and the time since then.
    assert after == pytest.approx([0.1, 1.2, 3.4, 7.8])


def test_one_wait_gets_as_many_polls_as_its_lateness_is_worth() -> None:
    steady = Plan(seen(), forecast=known(*spread(2.0, 6.0))).polls_until(6.5)
    slow = Plan(seen(), forecast=known(*spread(20.0, 60.0))).polls_until(61.0)
    assert 2 <= len(steady) < len(slow)
    assert steady[-1] == pytest.approx(6.0, abs=0.25)


def test_one_poll_serves_waits_for_operations_that_finish_at_about_the_same_time() -> None:
    plan = Plan(forecast=known(*[4.0] * 16))
    for number, start in enumerate((0.0, 0.1, 0.15, 3.0)):
        plan.add(seen(str(number), start))
    assert plan.next_poll() == pytest.approx(4.25)


def test_operation_that_finishes_first_brings_the_poll_forward() -> None:
    plan = Plan(forecast=known(*[4.0] * 16))
    late = seen("late", 3.0)
    plan.add(late)
    assert plan.next_poll(3.0) == pytest.approx(7.1)
    early = seen("early", 1.0)
    early.polled_at = 3.0
    plan.add(early, now=3.0)
    assert plan.next_poll(3.0) == pytest.approx(5.1)


def test_outlier_delays_no_other_operation() -> None:
    # One in 20 takes 60 s: after 3 s, polls do not wait for it.
    plan = Plan(seen(), forecast=known(*spread(1.0, 3.0, 38), 60.0, 60.0))
    after = [at for at in plan.polls_until(40.0) if at > 3.1]
    assert after[0] < 5.0
    assert max(second - first for first, second in pairwise(after)) <= POLICY.maximum


def test_waits_that_keep_coming_delay_no_poll() -> None:
    plan = Plan(forecast=known(*spread(1.0, 3.0)))
    polls: list[float] = []
    for number in range(300):
        now = number / 10
        while (at := plan.next_poll(now - 0.1)) < now:
            polls.append(at)
            for entry in plan.entries:
                if entry.started_at + 2.0 <= at:
                    plan.plan.drop(entry)
                    entry.waits.clear()
            plan.entries = [entry for entry in plan.entries if entry.waits]
            plan.poll(at)
        plan.add(seen(str(number), now))
    gaps = [second - first for first, second in pairwise(polls)]
    assert max(gaps) < 1.5


def test_constant_policy_ignores_durations_and_the_budget() -> None:
    pace = Pace(Budget(polls_left=0.0, polls_wanted=100, per_minute=700))
    policy = PollPolicy.constant(3.0)
    plan = Plan(seen(), policy=policy, pace=pace, forecast=known(*[1.0] * 16))
    assert plan.polls_until(10.0) == [3.0, 6.0, 9.0]


def test_constant_policy_keeps_its_interval_while_the_budget_is_short() -> None:
    pace = Pace(Budget(polls_left=0.0, polls_wanted=100, per_minute=700))
    plan = Plan(seen(), policy=PollPolicy.constant(3.0), pace=pace)
    assert plan.next_poll() == 3.0


def test_project_stays_a_scout_while_a_new_wait_needs_it() -> None:
    plan = Plan(seen("old"))
    plan.polls_until(60.0)
    plan.add(seen("new", 60.0))
    plan.poll(61.0)
    released = plan.pace.released_scouts
    plan.poll(62.0)
    plan.poll(63.0)
    assert plan.pace.released_scouts == released


def test_short_budget_leaves_a_wait_of_known_duration_one_poll_at_its_end() -> None:
    forecast = known(*spread(2.0, 6.0))
    pace = Pace(Budget(polls_left=80, polls_wanted=100, per_minute=700))
    assert Plan(seen(), forecast=forecast, pace=pace).polls_until(6.2) == [
        pytest.approx(6.0, abs=0.2)
    ]


def test_budget_that_becomes_short_delays_polls_that_were_planned() -> None:
    budget = Budget(polls_left=700, polls_wanted=1, per_minute=700)
    plan = Plan(seen(), forecast=known(*spread(2.0, 6.0)), pace=Pace(budget))
    assert plan.plan.next_poll_at(0.0) < 5.0
    budget.polls_left = 10.0
    assert plan.next_poll() > 5.0


def test_budget_that_becomes_plentiful_brings_polls_forward() -> None:
    budget = Budget(polls_left=10, polls_wanted=100, per_minute=700)
    plan = Plan(seen(), forecast=known(*spread(2.0, 12.0)), pace=Pace(budget))
    at = plan.plan.next_poll_at(0.0)
    budget.polls_left = 700.0
    assert at <= 1.0  # planned again by then
    assert plan.next_poll(at) < 7.0


def test_only_some_projects_measure_unknown_durations() -> None:
    pace = Pace(Budget())
    plans = [Plan(seen(), pace=pace) for _ in range(SCOUTS + 3)]
    times = [plan.next_poll() for plan in plans]
    assert times == [1.0] * SCOUTS + [CROWD] * 3
    wait = next(iter(plans[0].entries[0].waits))
    plans[0].plan.remove(plans[0].entries[0], wait)
    assert Plan(seen(), pace=pace).next_poll() == 1.0


def test_plan_reports_how_many_polls_its_waits_need() -> None:
    plan = Plan(forecast=known(*[4.0] * 16))
    plan.add(seen())
    plan.next_poll()
    known_polls = plan.plan.polls
    plan.add(unseen("b"))
    plan.next_poll()
    assert 0 < known_polls < plan.plan.polls


def test_poll_in_flight_does_not_make_a_known_duration_unknown() -> None:
    plan = Plan(seen(), forecast=known(*[4.0] * 16))
    plan.next_poll()
    wanted = plan.plan.polls
    plan.entries[0].poll = object()
    plan.plan.start_poll(plan.entries, 4.1)
    plan.next_poll(4.1)
    assert plan.plan.polls == wanted
    plan.add(seen("b", 4.2))
    plan.next_poll(4.2)
    assert plan.plan.polls == wanted


def test_last_poll_comes_shortly_before_the_deadline() -> None:
    plan = Plan(seen(), deadline=2.0)
    assert plan.polls_until(2.0) == [1.0, 1.75]


def test_last_poll_is_not_forgotten_while_the_budget_is_used_up() -> None:
    pace = Pace(Budget(polls_left=0.0, polls_wanted=500, per_minute=700))
    blockers = [Plan(seen(), pace=pace) for _ in range(SCOUTS)]
    assert len([plan.next_poll() for plan in blockers]) == SCOUTS
    plan = Plan(seen(), deadline=20.0, pace=pace)
    plan.read(15.0)
    assert plan.next_poll(19.7) == 19.75
    assert plan.plan.next_poll_at(19.77) <= 19.77  # it was due, and has not started yet


def test_last_poll_leaves_time_for_a_slow_response() -> None:
    plan = Plan(seen(), deadline=20.0, policy=PollPolicy.constant(100.0))
    assert plan.poll(1.0, seconds=1.5) == 20.0 - 1.25 * 1.5
    assert plan.poll(18.125, seconds=1.5) > 20.0


def test_last_poll_of_a_short_wait_after_a_slow_poll_comes_at_half_its_time() -> None:
    plan = Plan(seen(), policy=PollPolicy.constant(100.0))
    plan.poll(1.0, seconds=10.0)
    plan.add(seen("b", 11.0), deadline=26.0)
    assert plan.next_poll(11.0) == 18.5
    assert plan.poll(18.5) > 26.0


def test_last_poll_waits_until_another_poll_releases_its_operations() -> None:
    entry = seen()
    plan = Plan(entry, deadline=10.0, policy=PollPolicy.constant(100.0))
    plan.add(seen("b"), deadline=10.6)
    plan.plan.start_poll([entry], 1.0)
    entry.poll = object()
    assert plan.next_poll(9.96) == pytest.approx(10.35)
    entry.poll = None
    plan.plan.release([entry])
    assert plan.next_poll(9.97) == 9.97


def test_poll_serves_no_deadline_of_operations_that_another_poll_reads() -> None:
    entry, other = seen(), seen("b")
    plan = Plan(entry, deadline=10.6, policy=PollPolicy.constant(100.0))
    plan.add(other, deadline=10.2)
    plan.plan.start_poll([entry], 1.0)
    entry.poll = object()
    assert plan.next_poll(9.0) == pytest.approx(9.95)
    plan.plan.start_poll([other], 9.95)
    plan.plan.release([other])
    entry.poll = None
    plan.plan.release([entry])
    assert plan.next_poll(10.3) == pytest.approx(10.35)


def test_one_poll_serves_deadlines_close_together() -> None:
    policy = PollPolicy.constant(1000.0)
    plan = Plan(policy=policy)
    entry = seen()
    for number in range(1000):
        plan.add(entry, deadline=10.0 + number / 100)
    # The first polls of a client leave more time, and so serve fewer deadlines, than later ones.
    assert len(plan.polls_until(30.0)) <= 18 + (10.0 - 16 * 0.2) / 0.35


def test_one_poll_serves_deadlines_close_together_although_responses_are_slow() -> None:
    plan = Plan(policy=PollPolicy.constant(1000.0))
    plan.pace.note_response(1.0, 0.0, 10.0)
    entry = seen()
    for number in range(100):
        plan.add(entry, deadline=20.0 + number / 200)
    assert plan.polls_until(30.0) == [18.0, 18.75]


def test_wait_with_a_deadline_that_has_passed_needs_no_last_poll() -> None:
    plan = Plan(seen(), deadline=0.0)
    assert plan.next_poll() == 1.0


def test_failure_is_polled_again_when_it_becomes_final() -> None:
    plan = Plan(seen())
    plan.entries[0].failure_final_at = 1.2
    assert plan.poll(1.0) == 1.2


def test_failure_waits_for_the_other_operations_of_a_wait_that_reports_once() -> None:
    failed, pending = seen("a"), seen("b")
    plan = Plan()
    plan.add(failed, pending)
    failed.failure_final_at = 1.2
    plan.read(1.0)
    assert plan.next_poll(1.0) == 3.0
    plan.add(failed, reports_each=True, now=1.0)
    assert plan.next_poll(1.0) == 1.2


def test_404_is_polled_again_when_it_becomes_final() -> None:
    plan = Plan(seen())
    plan.entries[0].missing_final_at = 1.5
    assert plan.poll(1.0) == 1.5


def test_operation_that_a_poll_reads_now_is_not_polled() -> None:
    plan = Plan(seen())
    plan.entries[0].poll = object()
    plan.plan.start_poll(plan.entries, 1.0)
    assert plan.next_poll(1.0) == math.inf


def test_removed_wait_is_not_polled() -> None:
    plan = Plan(seen("a"), seen("b", 10.0))
    for entry in plan.entries[:1]:
        plan.plan.drop(entry)
    assert plan.next_poll() == 11.0


@given(
    st.lists(st.floats(0.01, 60.0), min_size=5, max_size=40),
    st.floats(0.0, 700.0),
    st.integers(1, 500),
)
def test_polls_never_stop(durations: list[float], left: float, wanted: int) -> None:
    pace = Pace(Budget(polls_left=left, polls_wanted=wanted, per_minute=700))
    plan = Plan(seen(), forecast=known(*durations), pace=pace)
    times = plan.polls_until(600.0)
    assert times
    assert all(second > first for first, second in pairwise(times))


@pytest.mark.parametrize(
    ("milliseconds", "seconds"), [(None, 3.0), (3500, 3.5), (1000, 2.0), (9000, 4.0), (0, 2.0)]
)
def test_duration_of_a_record_is_limited_to_the_observed_range(
    milliseconds: int | None, seconds: float
) -> None:
    observation = Observation("project", "create_branch", started_at=100.0)
    observation.pending_at = 102.0
    record = msgspec.structs.replace(operation(status="finished"), total_duration_ms=milliseconds)
    assert duration(observation, record, now=104.0) == seconds
