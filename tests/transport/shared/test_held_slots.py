"""The leases of one client of a shared account."""

import math
from typing import Any

import pytest

from neonctl_async import RateBudget
from neonctl_async.transport.account import Demand
from neonctl_async.transport.shared.held_slots import REPORT_SECONDS, HeldSlots
from neonctl_async.transport.shared.messages import (
    Adopted,
    Denial,
    Ended,
    Grant,
    Refill,
    Reply,
    Returned,
)
from tests.transport.shared.requests import ROUTE

OTHER_ROUTE = "GET /operations"


def reply_of(*grants: Grant, **values: Any) -> Reply:
    settings: dict[str, Any] = {
        "generation": "g",
        "used": len(grants),
        "valid": 1_000,
        "holders": 2,
        "calls": 0,
        "polls_wanted": 0,
        "denials": [],
        "refills": [],
    }
    return Reply(grants=list(grants), **(settings | values))


def new_slots(**limits: Any) -> HeldSlots:
    return HeldSlots(RateBudget(**limits), 30.0, "a")


def slots_with(count: int, *, at: float = 100.0, **values: Any) -> HeldSlots:
    """Return the leases of a client that has just received some slots."""
    slots = new_slots()
    slots.free_at(ROUTE, at, is_poll=False)
    request = slots.request(at)
    slots.apply(request, reply_of(Grant(1, 0, count), **values), at, at)
    return slots


def test_missing_slot_is_requested() -> None:
    slots = new_slots()
    assert slots.free_at(ROUTE, 100.0, is_poll=False) == math.inf
    assert slots.due_at(100.0) == -math.inf
    [want] = slots.request(100.0).wants
    assert (want.route, want.limit, want.calls, want.polls) == (ROUTE, 40, 1, 0)
    assert slots.due_at(100.0) == math.inf


def test_slot_is_requested_for_a_poll_unless_a_call_needs_the_route_too() -> None:
    slots = new_slots()
    slots.free_at(ROUTE, 100.0, is_poll=True)
    [want] = slots.request(100.0).wants
    assert (want.calls, want.polls) == (0, 1)
    slots.free_at(ROUTE, 100.0, is_poll=False)
    slots.free_at(ROUTE, 100.0, is_poll=True)
    [want] = slots.request(100.0).wants
    assert (want.calls, want.polls) == (1, 0)


def test_slots_of_queued_calls_are_requested_together() -> None:
    slots = new_slots()
    slots.demand = Demand(calls=9)
    slots.free_at(ROUTE, 100.0, is_poll=False)
    slots.free_at(OTHER_ROUTE, 100.0, is_poll=False)
    request = slots.request(100.0)
    assert [want.calls for want in request.wants] == [5, 5]
    assert request.calls == 9


def test_limits_of_the_client_are_sent() -> None:
    slots = new_slots(per_minute=None, per_route_per_second=None)
    slots.free_at(ROUTE, 100.0, is_poll=False)
    request = slots.request(100.0)
    assert request.limit == 0
    assert request.wants[0].limit == 0
    assert request.longest == 30_000


def test_leased_slot_can_be_taken_until_it_expires() -> None:
    slots = slots_with(2)
    assert slots.free_at(ROUTE, 100.0, is_poll=False) == -math.inf
    assert slots.free_at(ROUTE, 100.9, is_poll=False) == -math.inf
    assert slots.free_at(ROUTE, 101.0, is_poll=False) == math.inf
    assert slots.request(101.0).returned == [Returned(1, 2)]


def test_time_of_a_lease_counts_from_the_sending_of_its_request() -> None:
    slots = new_slots()
    slots.free_at(ROUTE, 100.0, is_poll=False)
    slots.apply(slots.request(100.0), reply_of(Grant(1, 0, 1)), 100.0, 100.4)
    assert slots.free_at(ROUTE, 100.9, is_poll=False) == -math.inf
    assert slots.free_at(ROUTE, 101.0, is_poll=False) == math.inf


def test_slot_in_the_future_is_announced() -> None:
    slots = new_slots()
    slots.free_at(ROUTE, 100.0, is_poll=False)
    slots.apply(slots.request(100.0), reply_of(Grant(1, 250, 1)), 100.0, 100.1)
    assert slots.free_at(ROUTE, 100.2, is_poll=False) == pytest.approx(100.35)
    assert slots.free_at(ROUTE, 100.36, is_poll=False) == -math.inf


def test_slot_of_a_denied_route_is_requested_again_after_the_delay() -> None:
    slots = new_slots()
    slots.free_at(ROUTE, 100.0, is_poll=False)
    denials = [Denial(ROUTE, 500)]
    slots.apply(slots.request(100.0), reply_of(denials=denials), 100.0, 100.0)
    assert slots.free_at(ROUTE, 100.1, is_poll=False) == 100.5
    assert slots.due_at(100.1) == math.inf
    assert slots.free_at(ROUTE, 100.5, is_poll=False) == math.inf
    assert slots.due_at(100.5) == -math.inf


def test_end_of_a_request_is_reported_with_its_age() -> None:
    slots = slots_with(2)
    for _ in range(2):
        slots.take(ROUTE, 100.0)
    slots.release(ROUTE, 100.2)
    slots.release(ROUTE, 100.2)
    assert slots.due_at(100.2) == pytest.approx(100.2 + REPORT_SECONDS)
    assert slots.request(101.2).ended == [Ended(1, ROUTE, 1000, 2)]


def test_end_is_reported_soon_while_another_client_waits() -> None:
    slots = slots_with(1, calls=3)
    slots.take(ROUTE, 100.0)
    assert slots.release(ROUTE, 100.2) == pytest.approx(100.3)


def test_idle_client_returns_its_slots() -> None:
    slots = slots_with(5)
    assert slots.due_at(100.0) == 100.0 + REPORT_SECONDS
    assert slots.request(100.0 + REPORT_SECONDS).returned == [Returned(1, 5)]
    assert slots.due_at(200.0) == math.inf


def test_client_with_a_request_in_flight_returns_expired_slots() -> None:
    slots = slots_with(5)
    slots.take(ROUTE, 100.0)
    assert slots.due_at(100.0) == 102.0
    assert slots.request(102.0).returned == [Returned(1, 4)]


def test_cancelled_request_returns_its_slot() -> None:
    slots = slots_with(2)
    slots.take(ROUTE, 100.0)
    slots.cancel(ROUTE)
    assert slots.due_at(100.0) == 100.0
    assert slots.request(100.0).returned == [Returned(1, 1)]


def test_last_slots_are_refilled_in_the_background() -> None:
    slots = slots_with(5)
    assert not slots.take(ROUTE, 100.0)
    assert slots.take(ROUTE, 100.0)
    [want] = slots.request(100.0).wants
    assert (want.calls, want.polls, want.spare) == (0, 0, 15)


def test_client_without_spare_slots_does_not_refill() -> None:
    slots = slots_with(2)
    assert not slots.take(ROUTE, 100.0)
    assert not slots.take(ROUTE, 100.0)


def test_free_slots_of_the_minute_include_unused_leases_and_known_refills() -> None:
    slots = slots_with(5, used=695, refills=[Refill(2_000, 100), Refill(4_000, 50)])
    assert slots.free(100.0) == 10
    assert slots.free(102.0) == 110
    assert slots.free(160.0) == 700
    assert slots.refill_at(100.0, 10) == -math.inf
    assert slots.refill_at(100.0, 110) == 102.0
    assert slots.refill_at(100.0, 111) == 104.0
    assert slots.refill_at(100.0, 161) == math.inf


def test_budget_without_a_limit_per_minute_is_always_free() -> None:
    assert new_slots(per_minute=None).free(0.0) == math.inf
    assert new_slots(per_minute=None).refill_at(0.0, 9) == -math.inf


def test_failed_exchange_is_repeated_and_its_leases_are_given_up() -> None:
    slots = slots_with(5)
    slots.take(ROUTE, 100.0)
    slots.release(ROUTE, 100.1)
    slots.free_at(OTHER_ROUTE, 100.5, is_poll=False)
    failed = slots.request(100.5)
    slots.fail(failed, 100.5)
    repeated = slots.request(101.1)
    assert [(one.lease, one.slots) for one in repeated.ended] == [(1, 1)]
    assert 1000 <= repeated.ended[0].age <= 1002
    returned = {one.lease: one.slots for one in repeated.returned}
    assert returned[1] == 4
    for want in failed.wants:
        assert returned[want.lease] > 1000


def test_requests_without_a_lease_are_adopted() -> None:
    slots = new_slots()
    slots.take(ROUTE, 100.0)
    slots.take(ROUTE, 100.0)
    slots.take(OTHER_ROUTE, 100.0)
    slots.release(OTHER_ROUTE, 100.1)
    request = slots.request(101.0)
    assert request.adopted == [Adopted(1, ROUTE, 2)]
    assert request.ended == [Ended(0, OTHER_ROUTE, 900, 1)]
    slots.apply(request, reply_of(), 101.0, 101.0)
    slots.release(ROUTE, 101.0)
    assert slots.request(101.0).ended == [Ended(1, ROUTE, 0, 1)]


def test_requests_are_adopted_again_if_the_exchange_failed() -> None:
    slots = new_slots()
    slots.take(ROUTE, 100.0)
    slots.fail(slots.request(101.0), 101.0)
    assert [one.route for one in slots.request(102.0).adopted] == [ROUTE]


def test_new_generation_makes_the_client_report_everything_again() -> None:
    slots = slots_with(5)
    slots.take(ROUTE, 100.0)
    slots.free_at(OTHER_ROUTE, 100.2, is_poll=False)
    request = slots.request(100.2)
    assert request.generation == "g"
    slots.apply(request, reply_of(generation="h"), 100.2, 100.2)
    assert slots.free_at(ROUTE, 100.2, is_poll=False) == math.inf
    assert slots.due_at(100.2) == -math.inf
    assert [(one.route, one.slots) for one in slots.request(100.2).adopted] == [(ROUTE, 1)]


def test_generation_is_forgotten_after_a_minute() -> None:
    assert slots_with(1).request(159.0).generation == "g"
    assert slots_with(1).request(160.0).generation == ""


def test_ends_of_requests_are_forgotten_after_a_minute_without_a_store() -> None:
    slots = new_slots()
    for second in range(100, 300):
        slots.take(ROUTE, float(second))
        slots.release(ROUTE, float(second))
    assert len(slots.request(300.0).ended) <= 62


def test_client_that_knows_nothing_counts_as_alone() -> None:
    slots = new_slots()
    slots.take(ROUTE, 100.0)
    slots.take(ROUTE, 100.0)
    assert slots.release(ROUTE, 100.0) == 105.0


def test_four_slots_are_enough_to_refill_in_the_background() -> None:
    assert slots_with(4).take(ROUTE, 100.0)
    assert not slots_with(3).take(ROUTE, 100.0)


def test_unused_slots_reduce_the_spare_slots_of_the_next_exchange() -> None:
    slots = slots_with(10)
    slots.take(ROUTE, 100.0)
    slots.release(ROUTE, 100.5)
    [want] = slots.request(100.9).wants
    assert (want.calls, want.spare) == (0, 6)


def test_state_of_the_account_is_requested_again_after_a_short_delay() -> None:
    slots = slots_with(1)
    slots.ask_again(100.0)
    assert slots.due_at(100.0) == 100.25
    slots.request(100.25)
    assert slots.due_at(100.3) > 100.5
