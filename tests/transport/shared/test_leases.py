"""The leases of one client of a shared account."""

import math
from typing import Any

import pytest

from neonctl_async import RateBudget
from neonctl_async.transport.account import Demand
from neonctl_async.transport.shared.leases import IDLE_SECONDS, REPORT_SECONDS, Leases
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
        "waits": 0,
        "denials": [],
        "refills": [],
    }
    return Reply(grants=list(grants), **(settings | values))


def new_leases(**limits: Any) -> Leases:
    return Leases(RateBudget(**limits), 30.0, "a")


def leases_with(slots: int, *, at: float = 100.0, **values: Any) -> Leases:
    """Return the leases of a client that has just received some slots."""
    leases = new_leases()
    leases.free_at(ROUTE, at, is_poll=False)
    request = leases.request(at)
    leases.apply(request, reply_of(Grant(1, 0, slots), **values), at, at)
    return leases


def test_missing_slot_is_requested() -> None:
    leases = new_leases()
    assert leases.free_at(ROUTE, 100.0, is_poll=False) == math.inf
    assert leases.due_at(100.0) == -math.inf
    [want] = leases.request(100.0).wants
    assert (want.route, want.limit, want.calls, want.polls) == (ROUTE, 40, 1, 0)
    assert leases.due_at(100.0) == math.inf


def test_slot_is_requested_for_a_poll_unless_a_call_needs_the_route_too() -> None:
    leases = new_leases()
    leases.free_at(ROUTE, 100.0, is_poll=True)
    [want] = leases.request(100.0).wants
    assert (want.calls, want.polls) == (0, 1)
    leases.free_at(ROUTE, 100.0, is_poll=False)
    leases.free_at(ROUTE, 100.0, is_poll=True)
    [want] = leases.request(100.0).wants
    assert (want.calls, want.polls) == (1, 0)


def test_slots_of_queued_calls_are_requested_together() -> None:
    leases = new_leases()
    leases.demand = Demand(calls=9)
    leases.free_at(ROUTE, 100.0, is_poll=False)
    leases.free_at(OTHER_ROUTE, 100.0, is_poll=False)
    request = leases.request(100.0)
    assert [want.calls for want in request.wants] == [5, 5]
    assert request.calls == 9


def test_limits_of_the_client_are_sent() -> None:
    leases = new_leases(per_minute=None, per_route_per_second=None)
    leases.free_at(ROUTE, 100.0, is_poll=False)
    request = leases.request(100.0)
    assert request.limit == 0
    assert request.wants[0].limit == 0
    assert request.longest == 30_000


def test_leased_slot_can_be_taken_until_it_expires() -> None:
    leases = leases_with(2)
    assert leases.free_at(ROUTE, 100.0, is_poll=False) == -math.inf
    assert leases.free_at(ROUTE, 100.9, is_poll=False) == -math.inf
    assert leases.free_at(ROUTE, 101.0, is_poll=False) == math.inf
    assert leases.request(101.0).returned == [Returned(1, 2)]


def test_time_of_a_lease_counts_from_the_sending_of_its_request() -> None:
    leases = new_leases()
    leases.free_at(ROUTE, 100.0, is_poll=False)
    leases.apply(leases.request(100.0), reply_of(Grant(1, 0, 1)), 100.0, 100.4)
    assert leases.free_at(ROUTE, 100.9, is_poll=False) == -math.inf
    assert leases.free_at(ROUTE, 101.0, is_poll=False) == math.inf


def test_slot_in_the_future_is_announced() -> None:
    leases = new_leases()
    leases.free_at(ROUTE, 100.0, is_poll=False)
    leases.apply(leases.request(100.0), reply_of(Grant(1, 250, 1)), 100.0, 100.1)
    assert leases.free_at(ROUTE, 100.2, is_poll=False) == pytest.approx(100.35)
    assert leases.free_at(ROUTE, 100.36, is_poll=False) == -math.inf


def test_slot_of_a_denied_route_is_requested_again_after_the_delay() -> None:
    leases = new_leases()
    leases.free_at(ROUTE, 100.0, is_poll=False)
    denials = [Denial(ROUTE, 500)]
    leases.apply(leases.request(100.0), reply_of(denials=denials), 100.0, 100.0)
    assert leases.free_at(ROUTE, 100.1, is_poll=False) == 100.5
    assert leases.due_at(100.1) == math.inf
    assert leases.free_at(ROUTE, 100.5, is_poll=False) == math.inf
    assert leases.due_at(100.5) == -math.inf


def test_end_of_a_request_is_reported_with_its_age() -> None:
    leases = leases_with(2)
    for _ in range(2):
        leases.take(ROUTE, 100.0)
    leases.release(ROUTE, 100.2)
    leases.release(ROUTE, 100.2)
    assert leases.due_at(100.2) == pytest.approx(100.2 + REPORT_SECONDS)
    assert leases.request(101.2).ended == [Ended(1, ROUTE, 1000, 2)]


def test_end_is_reported_soon_while_another_client_waits() -> None:
    leases = leases_with(1, calls=3)
    leases.take(ROUTE, 100.0)
    assert leases.release(ROUTE, 100.2) == pytest.approx(100.3)


def test_idle_client_returns_its_slots() -> None:
    leases = leases_with(5)
    assert leases.due_at(100.0) == 100.0 + IDLE_SECONDS
    assert leases.request(100.0 + IDLE_SECONDS).returned == [Returned(1, 5)]
    assert leases.due_at(200.0) == math.inf


def test_client_with_a_request_in_flight_returns_expired_slots() -> None:
    leases = leases_with(5)
    leases.take(ROUTE, 100.0)
    assert leases.due_at(100.0) == 102.0
    assert leases.request(102.0).returned == [Returned(1, 4)]


def test_cancelled_request_returns_its_slot() -> None:
    leases = leases_with(2)
    leases.take(ROUTE, 100.0)
    leases.cancel(ROUTE)
    assert leases.due_at(100.0) == 100.0
    assert leases.request(100.0).returned == [Returned(1, 1)]


def test_last_slots_are_refilled_in_the_background() -> None:
    leases = leases_with(5)
    assert not leases.take(ROUTE, 100.0)
    assert leases.take(ROUTE, 100.0)
    [want] = leases.request(100.0).wants
    assert (want.calls, want.polls, want.spare) == (0, 0, 15)


def test_client_without_spare_slots_does_not_refill() -> None:
    leases = leases_with(2)
    assert not leases.take(ROUTE, 100.0)
    assert not leases.take(ROUTE, 100.0)


def test_free_slots_of_the_minute_include_unused_leases_and_known_refills() -> None:
    leases = leases_with(5, used=695, refills=[Refill(2_000, 100), Refill(4_000, 50)])
    assert leases.free(100.0) == 10
    assert leases.free(102.0) == 110
    assert leases.free(160.0) == 700
    assert leases.refill_at(100.0, 10) == -math.inf
    assert leases.refill_at(100.0, 110) == 102.0
    assert leases.refill_at(100.0, 111) == 104.0
    assert leases.refill_at(100.0, 161) == math.inf


def test_budget_without_a_limit_per_minute_is_always_free() -> None:
    assert new_leases(per_minute=None).free(0.0) == math.inf
    assert new_leases(per_minute=None).refill_at(0.0, 9) == -math.inf


def test_failed_exchange_is_repeated_and_its_leases_are_given_up() -> None:
    leases = leases_with(5)
    leases.take(ROUTE, 100.0)
    leases.release(ROUTE, 100.1)
    leases.free_at(OTHER_ROUTE, 100.5, is_poll=False)
    failed = leases.request(100.5)
    leases.fail(failed, 100.5)
    repeated = leases.request(101.1)
    assert [(one.lease, one.slots) for one in repeated.ended] == [(1, 1)]
    assert 1000 <= repeated.ended[0].age <= 1002
    returned = {one.lease: one.slots for one in repeated.returned}
    assert returned[1] == 4
    for want in failed.wants:
        assert returned[want.lease] > 1000


def test_requests_without_a_lease_are_adopted() -> None:
    leases = new_leases()
    leases.take(ROUTE, 100.0)
    leases.take(ROUTE, 100.0)
    leases.take(OTHER_ROUTE, 100.0)
    leases.release(OTHER_ROUTE, 100.1)
    request = leases.request(101.0)
    assert request.adopted == [Adopted(1, ROUTE, 2)]
    assert request.ended == [Ended(0, OTHER_ROUTE, 900, 1)]
    leases.apply(request, reply_of(), 101.0, 101.0)
    leases.release(ROUTE, 101.0)
    assert leases.request(101.0).ended == [Ended(1, ROUTE, 0, 1)]


def test_requests_are_adopted_again_if_the_exchange_failed() -> None:
    leases = new_leases()
    leases.take(ROUTE, 100.0)
    leases.fail(leases.request(101.0), 101.0)
    assert [one.route for one in leases.request(102.0).adopted] == [ROUTE]


def test_new_generation_makes_the_client_report_everything_again() -> None:
    leases = leases_with(5)
    leases.take(ROUTE, 100.0)
    leases.free_at(OTHER_ROUTE, 100.2, is_poll=False)
    request = leases.request(100.2)
    assert request.generation == "g"
    leases.apply(request, reply_of(generation="h"), 100.2, 100.2)
    assert leases.free_at(ROUTE, 100.2, is_poll=False) == math.inf
    assert leases.due_at(100.2) == -math.inf
    assert [(one.route, one.slots) for one in leases.request(100.2).adopted] == [(ROUTE, 1)]


def test_generation_is_forgotten_after_a_minute() -> None:
    assert leases_with(1).request(159.0).generation == "g"
    assert leases_with(1).request(160.0).generation == ""


def test_ends_of_requests_are_forgotten_after_a_minute_without_a_store() -> None:
    leases = new_leases()
    for second in range(100, 300):
        leases.take(ROUTE, float(second))
        leases.release(ROUTE, float(second))
    assert len(leases.request(300.0).ended) <= 62


def test_client_that_knows_nothing_counts_as_alone() -> None:
    leases = new_leases()
    leases.take(ROUTE, 100.0)
    leases.take(ROUTE, 100.0)
    assert leases.release(ROUTE, 100.0) == 105.0


def test_four_slots_are_enough_to_refill_in_the_background() -> None:
    assert leases_with(4).take(ROUTE, 100.0)
    assert not leases_with(3).take(ROUTE, 100.0)


def test_unused_slots_reduce_the_spare_slots_of_the_next_exchange() -> None:
    leases = leases_with(10)
    leases.take(ROUTE, 100.0)
    leases.release(ROUTE, 100.5)
    [want] = leases.request(100.9).wants
    assert (want.calls, want.spare) == (0, 6)


def test_state_of_the_account_is_requested_again_after_a_short_delay() -> None:
    leases = leases_with(1)
    leases.ask_again(100.0)
    assert leases.due_at(100.0) == 100.25
    leases.request(100.25)
    assert leases.due_at(100.3) > 100.5
