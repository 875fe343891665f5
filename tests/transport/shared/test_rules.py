"""Leases of the slots of a shared account."""

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from neonctl_async.transport.shared.messages import Ended, Reply, Request, Returned, Want
from neonctl_async.transport.shared.rules import (
    AHEAD,
    AHEAD_ALONE,
    RETRY_MAX,
    VALID,
    VALID_ALONE,
    exchange,
)
from neonctl_async.transport.shared.state import MINUTE, State, new_state
from tests.transport.shared.histories import ROUTES, START, Step, World, histories, most_in_window
from tests.transport.shared.requests import (
    ROUTE,
    leased,
    request_of,
    wants_calls,
    wants_polls,
)

NOW = 1_000_000
OTHER_ROUTE = "GET /operations"


def new_account() -> State:
    return new_state(request_of("a"), NOW)


class Account:
    """A store that keeps one account."""

    def __init__(self) -> None:
        self.state: State | None = None

    def exchange(self, request: Request, now: int) -> Reply:
        self.state = self.state or new_state(request, now)
        return exchange(self.state, request, now)


@given(histories())
def test_no_window_ever_has_more_requests_than_its_limit(history: list[Step]) -> None:
    world = World(Account().exchange).run(history)
    assert most_in_window([(start, end) for _, start, end in world.requests], 60_000) <= 12
    for route in ROUTES:
        times = [(start, end) for name, start, end in world.requests if name == route]
        assert most_in_window(times, 1_000) <= 4


@given(histories())
def test_every_slot_is_free_again_in_the_end(history: list[Step]) -> None:
    account = Account()
    account.exchange(request_of("first"), START)
    World(account.exchange).run(history)
    assert account.state is not None
    later = account.state.now + 5_000 + 3_000 + 2_000 + 61_000
    reply = exchange(account.state, wants_calls("new", 12, limit=12), later)
    assert leased(reply) == 12
    assert reply.used == 12


@settings(max_examples=20)
@given(st.lists(st.integers(1, 3), min_size=2, max_size=8), st.integers(0, 10))
def test_every_waiting_client_is_served(wants: list[int], polls: int) -> None:
    """Clients come back as late as they may, and always want more."""
    state = new_account()
    served = [0] * len(wants)
    times = [NOW] * len(wants)
    for now in range(NOW, NOW + 3 * MINUTE, 50):
        for client, calls in enumerate(wants):
            if times[client] > now:
                continue
            kind = wants_polls if client < polls % len(wants) else wants_calls
            reply = exchange(state, kind(f"{client}", calls, lease=now, limit=10), now)
            slots = [(grant.delay, grant.slots) for grant in reply.grants]
            served[client] += sum(count for _, count in slots)
            ended = [Ended(now, ROUTE, 0, count) for _, count in slots]
            exchange(state, request_of(f"{client}", ended=ended, limit=10), now)
            delays = [denial.delay for denial in reply.denials]
            times[client] = now + min([*delays, RETRY_MAX])
    assert min(served) >= 1
    assert sum(served) >= 20


def test_lone_client_leases_what_it_wants_and_some_spare_slots() -> None:
    reply = exchange(new_account(), wants_calls("a", 1, spare=15), NOW)
    assert leased(reply) == 16
    assert reply.valid == VALID_ALONE
    assert reply.denials == []


def test_spare_slots_leave_half_of_a_route_to_others() -> None:
    reply = exchange(new_account(), wants_calls("a", 1, spare=15, route_limit=10), NOW)
    assert leased(reply) == 6


def test_second_client_gets_fewer_spare_slots_for_a_shorter_time() -> None:
    state = new_account()
    exchange(state, request_of("b"), NOW)
    reply = exchange(state, wants_calls("a", 1, spare=15), NOW)
    assert leased(reply) == 11
    assert reply.valid == VALID


def test_no_spare_slots_are_leased_while_another_client_waits() -> None:
    state = new_account()
    exchange(state, wants_calls("b", 50), NOW)
    reply = exchange(state, wants_calls("a", 1, route=OTHER_ROUTE, spare=15), NOW)
    assert leased(reply) == 1


def test_limit_of_a_route_holds_across_clients() -> None:
    state = new_account()
    assert leased(exchange(state, wants_calls("a", 30), NOW)) == 30
    assert leased(exchange(state, wants_calls("b", 30), NOW)) == 10
    assert leased(exchange(state, wants_calls("c", 30, route=OTHER_ROUTE), NOW)) >= 1


def test_smaller_limit_of_a_client_holds_for_that_client() -> None:
    state = new_account()
    assert leased(exchange(state, wants_calls("a", 9, limit=10), NOW)) == 9
    assert leased(exchange(state, wants_calls("b", 9, limit=10), NOW)) == 1
    assert leased(exchange(state, wants_calls("c", 9, limit=700), NOW)) == 9


def test_budget_without_limits_leases_everything() -> None:
    reply = exchange(new_account(), wants_calls("a", 5000, limit=0, route_limit=0), NOW)
    assert leased(reply) == 5000


def test_slot_that_slides_out_soon_is_leased_ahead() -> None:
    state = new_account()
    exchange(state, wants_calls("a", 40), NOW)
    exchange(state, request_of("a", ended=[Ended(1, ROUTE, 0, 40)]), NOW)
    reply = exchange(state, wants_calls("a", 1, lease=2), NOW + 400)
    assert [grant.delay for grant in reply.grants] == [600]
    assert reply.grants[0].delay <= AHEAD_ALONE


def test_client_is_sent_away_until_a_slot_can_be_leased_ahead() -> None:
    state = new_account()
    exchange(state, request_of("b"), NOW)
    exchange(state, wants_calls("a", 40), NOW)
    exchange(state, request_of("a", ended=[Ended(1, ROUTE, 0, 40)]), NOW)
    reply = exchange(state, wants_calls("a", 1, lease=2), NOW)
    assert reply.grants == []
    assert [denial.delay for denial in reply.denials] == [1000 - AHEAD]


def test_longest_waiting_client_gets_the_next_slot() -> None:
    state = new_account()
    exchange(state, wants_calls("a", 1, route_limit=1), NOW)
    exchange(state, wants_calls("b", 1, route_limit=1), NOW)
    exchange(state, wants_calls("c", 1, route_limit=1), NOW)
    exchange(state, request_of("a", returned=[Returned(1, 1)]), NOW + 10)
    assert exchange(state, wants_calls("c", 1, route_limit=1), NOW + 20).grants == []
    assert leased(exchange(state, wants_calls("b", 1, route_limit=1), NOW + 30)) == 1


def test_client_that_does_not_come_back_loses_its_place() -> None:
    state = new_account()
    exchange(state, wants_calls("a", 1, route_limit=1), NOW)
    [denial] = exchange(state, wants_calls("b", 1, route_limit=1), NOW).denials
    exchange(state, request_of("a", returned=[Returned(1, 1)]), NOW + 10)
    late = NOW + denial.delay + 1_000
    assert exchange(state, wants_calls("c", 1, route_limit=1), late - 1).grants == []
    assert leased(exchange(state, wants_calls("c", 1, route_limit=1), late)) == 1


def test_waiting_clients_share_what_is_free() -> None:
    state = new_account()
    exchange(state, wants_calls("a", 38), NOW)
    for client in "bcd":
        exchange(state, wants_calls(client, 100), NOW)
    exchange(state, request_of("a", returned=[Returned(1, 38)]), NOW + 10)
    assert leased(exchange(state, wants_calls("b", 100, lease=2), NOW + 20)) <= 20


def test_calls_of_all_clients_go_before_polls() -> None:
    state = new_account()
    exchange(state, wants_calls("a", 1, route_limit=1), NOW)
    exchange(state, wants_polls("b", 1, route_limit=1), NOW)
    exchange(state, wants_calls("c", 1, route_limit=1), NOW + 1)
    exchange(state, request_of("a", returned=[Returned(1, 1)]), NOW + 10)
    assert exchange(state, wants_polls("b", 1, route_limit=1), NOW + 20).grants == []
    assert leased(exchange(state, wants_calls("c", 1, route_limit=1), NOW + 30)) == 1


def test_each_tenth_slot_is_for_a_poll_while_calls_wait() -> None:
    state = new_account()
    limits: dict[str, Any] = {"limit": 1000, "route_limit": 1}
    exchange(state, wants_calls("caller", 1, **limits), NOW)
    kinds: list[str] = []
    for number in range(1, 41):
        now = NOW + number * 10
        holder = kinds[-1] if kinds else "caller"
        returned = request_of(holder, returned=[Returned(number if kinds else 1, 1)], limit=1000)
        exchange(state, returned, now)
        for name, wants in (("poller", wants_polls), ("caller", wants_calls)):
            if exchange(state, wants(name, 5, lease=number + 1, **limits), now).grants:
                kinds.append(name)
        assert len(kinds) == number
    polls = [index for index, kind in enumerate(kinds) if kind == "poller"]
    assert len(polls) >= 3
    assert {later - earlier for earlier, later in pairwise(polls)} == {10}


def test_reply_reports_the_demand_of_other_clients() -> None:
    state = new_account()
    exchange(state, request_of("a", calls=3, polls_wanted=4), NOW)
    exchange(state, request_of("b", calls=5, polls_wanted=6), NOW)
    reply = exchange(state, request_of("c", calls=100, polls_wanted=100), NOW)
    assert (reply.calls, reply.polls_wanted, reply.holders) == (8, 10, 3)


def test_reply_reports_when_slots_of_the_minute_slide_out() -> None:
    state = new_account()
    report = request_of("a", ended=[Ended(0, ROUTE, 0, 2)])
    for number in range(49):
        exchange(state, report, NOW + number * 1_000)
    reply = exchange(state, report, NOW + 49_000)
    assert sum(refill.slots for refill in reply.refills) == 100
    assert len(reply.refills) <= 20
    assert reply.refills[-1].delay == MINUTE
    assert [refill.delay for refill in reply.refills] == sorted(
        refill.delay for refill in reply.refills
    )


def test_two_routes_are_leased_in_one_exchange() -> None:
    wants = [Want(1, ROUTE, 40, 2, 0, 0), Want(2, OTHER_ROUTE, 40, 3, 1, 0)]
    reply = exchange(new_account(), request_of("a", wants=wants), NOW)
    assert [(grant.lease, grant.slots) for grant in reply.grants] == [(1, 2), (2, 4)]
    assert reply.used == 6
