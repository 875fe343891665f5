"""The slots of a shared account: what a report changes, and what time changes."""

from neonctl_async.transport.shared.messages import Adopted, Ended, Returned
from neonctl_async.transport.shared.rules import exchange
from neonctl_async.transport.shared.state import (
    FORGET,
    MINUTE,
    MINUTE_STEP,
    Lease,
    State,
    advance,
    new_state,
    settle,
    used_slots,
)
from tests.transport.shared.requests import ROUTE, request_of, wants_calls

NOW = 1_000_000


def state_with_lease(slots: int = 5, expires_at: int = NOW + 31_000) -> State:
    state = new_state(request_of("a"), NOW)
    state.leases["a/1"] = Lease(ROUTE, slots, expires_at)
    return state


def test_unused_lease_occupies_its_slots() -> None:
    assert used_slots(state_with_lease(5)) == 5


def test_slot_is_occupied_until_one_minute_after_the_end_of_its_request() -> None:
    state = state_with_lease(1)
    settle(state, request_of("a", ended=[Ended(1, ROUTE, 0, 1)]), NOW)
    assert state.leases == {}
    advance(state, NOW + MINUTE - 1)
    assert used_slots(state) == 1
    advance(state, NOW + MINUTE + MINUTE_STEP)
    assert used_slots(state) == 0


def test_slot_of_a_route_is_occupied_until_one_second_after_the_end() -> None:
    state = state_with_lease(1)
    settle(state, request_of("a", ended=[Ended(1, ROUTE, 0, 1)]), NOW)
    advance(state, NOW + 999)
    assert ROUTE in state.routes
    advance(state, NOW + 1010)
    assert state.routes == {}


def test_reported_age_dates_the_end_back() -> None:
    state = state_with_lease(1)
    settle(state, request_of("a", ended=[Ended(1, ROUTE, 20_000, 1)]), NOW)
    assert state.routes == {}
    advance(state, NOW + MINUTE - 20_000)
    assert used_slots(state) == 0


def test_returned_slots_are_free_at_once() -> None:
    state = state_with_lease(5)
    settle(state, request_of("a", returned=[Returned(1, 3)]), NOW)
    assert used_slots(state) == 2
    settle(state, request_of("a", returned=[Returned(1, 9)]), NOW)
    assert used_slots(state) == 0


def test_client_cannot_return_the_slots_of_another_client() -> None:
    state = state_with_lease(5)
    settle(state, request_of("b", returned=[Returned(1, 5)]), NOW)
    assert used_slots(state) == 5


def test_end_of_a_request_without_a_lease_counts() -> None:
    state = new_state(request_of("a"), NOW)
    settle(state, request_of("a", ended=[Ended(0, ROUTE, 0, 4)]), NOW)
    assert used_slots(state) == 4


def test_adopted_requests_occupy_slots_until_their_responses() -> None:
    state = new_state(request_of("a"), NOW)
    settle(state, request_of("a", adopted=[Adopted(7, ROUTE, 2)]), NOW)
    assert used_slots(state) == 2
    settle(state, request_of("a", ended=[Ended(7, ROUTE, 0, 2)]), NOW)
    assert used_slots(state) == 2
    assert state.leases == {}


def test_lease_of_a_dead_client_counts_as_responses_at_its_expiry() -> None:
    state = state_with_lease(3, expires_at=NOW + 31_000)
    advance(state, NOW + 31_000)
    assert state.leases == {}
    assert used_slots(state) == 3
    advance(state, NOW + 31_000 + MINUTE - 1)
    assert used_slots(state) == 3
    advance(state, NOW + 31_000 + MINUTE + MINUTE_STEP)
    assert used_slots(state) == 0


def test_lease_that_expired_long_ago_is_forgotten() -> None:
    state = state_with_lease(3, expires_at=NOW + 31_000)
    advance(state, NOW + 10 * MINUTE)
    assert used_slots(state) == 0


def test_client_that_no_longer_reports_is_forgotten() -> None:
    state = new_state(request_of("a"), NOW)
    exchange(state, request_of("a", calls=3, polls_wanted=8), NOW)
    assert exchange(state, request_of("b"), NOW + FORGET - 1).polls_wanted == 8
    assert exchange(state, request_of("b"), NOW + FORGET).polls_wanted == 0
    assert list(state.holders) == ["b"]


def test_clock_that_is_set_back_frees_no_slot_and_blocks_none_for_longer_than_a_minute() -> None:
    state = state_with_lease(1)
    exchange(state, request_of("a", ended=[Ended(1, ROUTE, 0, 1)]), NOW)
    advance(state, NOW - 3_600_000)
    assert used_slots(state) == 1
    advance(state, NOW - 3_600_000 + MINUTE - 1)
    assert used_slots(state) == 1
    advance(state, NOW - 3_600_000 + MINUTE + MINUTE_STEP)
    assert used_slots(state) == 0


def test_clock_that_is_set_back_moves_leases_and_queues() -> None:
    state = new_state(request_of("a"), NOW)
    exchange(state, wants_calls("a", 2, limit=1), NOW)
    advance(state, NOW - 3_600_000)
    [lease] = state.leases.values()
    [lack] = state.holders["a"].lacks.values()
    assert lease.expires_at - state.now > 30_000
    assert lease.expires_at - state.now < 40_000
    assert 0 < lack.until - state.now <= 3_000
    assert state.holders["a"].seen_at == state.now


def test_lost_data_is_replaced_by_what_the_first_client_knows() -> None:
    state = new_state(request_of("b"), NOW)
    reply = exchange(state, wants_calls("a", 5, generation="lost", used=650), NOW)
    assert reply.grants == []
    assert reply.used == 650
    assert reply.generation == state.generation


def test_nothing_is_leased_for_a_second_after_a_loss() -> None:
    state = new_state(request_of("b"), NOW)
    exchange(state, request_of("a", generation="lost", used=10), NOW)
    [denial] = exchange(state, wants_calls("b", 5), NOW + 400).denials
    assert denial.delay == 600
    assert exchange(state, wants_calls("b", 5), NOW + 1000).grants


def test_second_client_that_reports_a_loss_adds_only_what_is_missing() -> None:
    state = new_state(request_of("b"), NOW)
    exchange(state, request_of("a", generation="lost", used=650), NOW)
    assert exchange(state, request_of("b", generation="lost", used=655), NOW).used == 655
