"""The plan of a project, with times from the test. The tests of the poller cover its effect."""

import math

import pytest

from neonctl_async import PollPolicy
from neonctl_async.waiting.change_queue import ChangeQueue
from neonctl_async.waiting.forecast import Forecast
from neonctl_async.waiting.plan import LAST_POLL_MARGIN, MIN_POLL_GAP, ProjectPlan
from neonctl_async.waiting.tracked import TrackedOperation
from tests.support.records import free_pace, operation, ref

POLICY = PollPolicy(initial=1.0, growth=2.0, maximum=10.0, jitter=0.0)


def plan_of(*entries: TrackedOperation, deadline: float = math.inf) -> ProjectPlan:
    """Return a plan with these operations, added at the time 0."""
    plan = ProjectPlan(POLICY, Forecast(), free_pace(), draw=lambda: 0.5)
    for entry in entries:
        plan.add(entry, add_queue(entry, deadline), now=0.0)
    return plan


def add_queue(entry: TrackedOperation, deadline: float = math.inf) -> ChangeQueue:
    queue = ChangeQueue(deadline)
    entry.queues.add(queue)
    return queue


def seen(id: str, started_at: float = 0.0) -> TrackedOperation:
    entry = TrackedOperation(ref(id), started_at)
    entry.record = operation(id)
    return entry


def test_no_poll_is_planned_without_operations() -> None:
    assert plan_of().next_poll_at == math.inf


def test_reference_is_polled_at_once() -> None:
    assert plan_of(TrackedOperation(ref("a"), 0.0)).next_poll_at == 0.0


def test_operation_with_a_record_is_polled_after_the_first_delay() -> None:
    assert plan_of(seen("a")).next_poll_at == pytest.approx(1.0)


def test_delays_grow_from_poll_to_poll() -> None:
    entry = seen("a")
    plan = plan_of(entry)
    polled_at: list[float] = []
    for _ in range(5):
        now = plan.next_poll_at
        polled_at.append(now)
        plan.start_poll(now)
        entry.polled_at = now
        plan.finish_poll(0.0)
        plan.replan([entry], now)
    assert polled_at == pytest.approx([1.0, 3.0, 7.0, 15.0, 23.0])


def test_reference_added_during_a_poll_is_polled_shortly_after_its_start() -> None:
    plan = plan_of(TrackedOperation(ref("a"), 0.0))
    plan.start_poll(0.0)
    assert plan.next_poll_at == math.inf
    unseen = TrackedOperation(ref("b"), 0.01)
    plan.add(unseen, add_queue(unseen), now=0.01)
    assert plan.next_poll_at == pytest.approx(MIN_POLL_GAP)
    plan.replan([unseen], now=0.02)
    assert plan.next_poll_at == pytest.approx(MIN_POLL_GAP)


def test_last_poll_comes_before_the_deadline_by_twice_the_duration_of_a_poll() -> None:
    entry = seen("a")
    plan = plan_of(entry, deadline=0.5)
    assert plan.next_poll_at == pytest.approx(0.5 - LAST_POLL_MARGIN)
    plan.start_poll(0.1)
    plan.finish_poll(0.1)
    plan.replan([entry], now=0.2)
    assert plan.next_poll_at == pytest.approx(0.3)


def test_new_failure_is_read_again_when_its_grace_is_over() -> None:
    entry = seen("a")
    entry.failure_final_at = 1.5
    plan = plan_of(entry)
    assert plan.next_poll_at == 1.5
    plan.replan([entry, seen("b")], now=0.1)
    assert plan.next_poll_at == pytest.approx(1.0)
    plan.replan([entry], now=0.1)
    assert plan.next_poll_at == 1.5


def test_failure_that_the_poll_after_its_grace_did_not_confirm_is_polled_on_schedule() -> None:
    entry = seen("a")
    entry.failure_final_at = 1.5
    plan = plan_of(entry)
    plan.start_poll(1.5)
    entry.polled_at = 1.5
    plan.replan([entry], now=1.5)
    assert plan.next_poll_at == pytest.approx(1.5 + 2.5)


def test_404_is_confirmed_when_its_grace_is_over() -> None:
    entry = seen("a")
    plan = plan_of(entry)
    plan.start_poll(6.0)
    entry.polled_at, entry.missing_final_at = 6.0, 7.5
    plan.replan([entry], now=6.0)
    assert plan.next_poll_at == 7.5
