"""The rules of a shared account: in a table, and on a Redis server."""

import time

import pytest
from hypothesis import HealthCheck, given, settings

from neonctl_async.transport.shared.messages import Reply, Request, Slot
from neonctl_async.transport.shared.table import (
    AHEAD,
    CLOSING,
    MINUTE,
    SECOND,
    VALID,
)
from tests.transport.shared.clients import Table
from tests.transport.shared.conftest import RedisRules
from tests.transport.shared.histories import (
    LONGEST,
    ROUTES,
    Step,
    World,
    histories,
    most_in_window,
)
from tests.transport.shared.requests import ROUTE, ends, granted, request_of

NOW = 1_000_000
OTHER_ROUTE = ROUTES[1]


@given(histories())
def test_no_window_ever_has_more_requests_than_its_limit(history: list[Step]) -> None:
    world = World(Table().exchange).run(history)
    assert most_in_window([(start, end) for _, start, end in world.requests], MINUTE) <= 12
    for route in ROUTES:
        times = [(start, end) for name, start, end in world.requests if name == route]
        assert most_in_window(times, SECOND) <= 4


@given(histories())
def test_every_slot_is_free_again_in_the_end(history: list[Step]) -> None:
    table = Table()
    world = World(table.exchange).run(history)
    later = world.now + AHEAD + VALID + LONGEST + MINUTE
    reply = table.exchange(request_of("f", wants=12, limit=12), later)
    assert (granted(reply), reply.used) == (12, 12)


def test_limit_of_a_route_holds_across_clients() -> None:
    table = Table()
    assert granted(table.exchange(request_of("a", wants=30), NOW)) == 30
    assert granted(table.exchange(request_of("b", wants=30), NOW)) == 10
    assert granted(table.exchange(request_of("c", OTHER_ROUTE, wants=30), NOW)) == 30


def test_limit_of_the_minute_holds_across_routes_and_clients() -> None:
    table = Table()
    assert granted(table.exchange(request_of("a", wants=30, limit=50), NOW)) == 30
    reply = table.exchange(request_of("b", OTHER_ROUTE, wants=30, limit=50), NOW)
    assert granted(reply) == 20
    assert (reply.used, reply.clients) == (50, 2)


def test_smaller_limit_of_a_client_holds_for_that_client() -> None:
    table = Table()
    assert granted(table.exchange(request_of("a", wants=9, limit=10), NOW)) == 9
    assert granted(table.exchange(request_of("b", wants=9, limit=10), NOW)) == 1
    assert granted(table.exchange(request_of("c", wants=9), NOW)) == 9


def test_budget_without_limits_grants_everything() -> None:
    assert (
        granted(Table().exchange(request_of("a", wants=5000, limit=0, route_limit=0), NOW)) == 5000
    )


def test_slot_is_occupied_until_one_period_after_the_response() -> None:
    table = Table()
    table.exchange(request_of("a", wants=1, route_limit=1), NOW)
    table.exchange(request_of("a", slots=ends(1, age=20)), NOW + 500)
    wants = request_of("b", wants=1, route_limit=1)
    [(route, delay)] = table.exchange(wants, NOW + 500).denials
    assert (route, delay) == (ROUTE, SECOND - 20)
    assert granted(table.exchange(wants, NOW + 500 + delay)) == 1


def test_slot_of_a_killed_client_is_free_after_the_longest_request() -> None:
    table = Table()
    table.exchange(request_of("a", wants=1, route_limit=1), NOW)
    wants = request_of("b", wants=1, route_limit=1)
    free_at = NOW + VALID + LONGEST + SECOND
    [(_, delay)] = table.exchange(wants, free_at - AHEAD - 1).denials
    assert delay == AHEAD + 1
    assert granted(table.exchange(wants, free_at)) == 1


def test_client_learns_when_a_request_in_flight_can_free_a_slot_at_the_earliest() -> None:
    table = Table()
    table.exchange(request_of("a", wants=1, route_limit=1), NOW)
    assert table.exchange(request_of("b", wants=1, route_limit=1), NOW).denials == [(ROUTE, SECOND)]


def test_slot_that_is_free_soon_is_taken_ahead_by_one_client() -> None:
    table = Table()
    table.exchange(request_of("a", wants=1, route_limit=1), NOW)
    table.exchange(request_of("a", slots=ends(1)), NOW)
    at = NOW + SECOND - AHEAD
    assert table.exchange(request_of("b", wants=1, route_limit=1), at).grants == [(1, AHEAD)]
    assert table.exchange(request_of("c", wants=1, route_limit=1), at).denials == [(ROUTE, SECOND)]


def test_returned_slot_is_free_at_once() -> None:
    table = Table()
    table.exchange(request_of("a", wants=1, limit=1), NOW)
    reply = table.exchange(request_of("a", returned=ends(1), wants=1, first=2, limit=1), NOW)
    assert granted(reply) == 1


def test_reply_reports_when_slots_of_the_minute_become_free() -> None:
    table = Table()
    table.exchange(request_of("a", wants=100, route_limit=0), NOW)
    for number in range(1, 101):
        table.exchange(request_of("a", slots=[Slot(number, ROUTE, 0)]), NOW + 10 * number)
    reply = table.exchange(request_of("b"), NOW + 1_000)
    assert (reply.used, sum(count for _, count in reply.refills)) == (100, 100)
    assert reply.refills[-1] == (MINUTE, 100)
    table.exchange(request_of("a", slots=ends(50)), NOW + 50_000)
    reply = table.exchange(request_of("b"), NOW + 50_000)
    assert reply.refills == [(MINUTE - 49_000, 50), (MINUTE, 50)]


def test_slots_that_the_store_has_lost_are_noticed_and_recorded() -> None:
    table = Table()
    table.exchange(request_of("a", wants=3), NOW)
    table.clear()
    reply = table.exchange(request_of("a", slots=ends(3), wants=1, first=4), NOW)
    assert (reply.unknown, reply.used, reply.grants) == (3, 3, [])
    reply = table.exchange(request_of("a", slots=ends(3), wants=1, first=4), NOW)
    assert (reply.unknown, reply.used, granted(reply)) == (0, 4, 1)


def test_account_can_be_closed_until_all_clients_have_reported() -> None:
    table = Table()
    table.exchange(request_of("a", slots=[Slot(0, CLOSING, -2_000)]), NOW)
    assert table.exchange(request_of("b", wants=1), NOW).denials == [(ROUTE, 2_000)]
    assert granted(table.exchange(request_of("b", wants=1), NOW + 2_000)) == 1


@pytest.mark.process
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories(steps=30, delays=(0, 1, 7, 40, 300, 1000, 2500, 61_000)))
def test_script_for_redis_has_the_same_rules(redis_rules: RedisRules, history: list[Step]) -> None:
    """The script gets the time of the history instead of that of the server."""
    redis_rules.clear()
    table = Table()

    def exchange(request: Request, now: int) -> Reply:
        reply = table.exchange(request, now)
        assert redis_rules.exchange(request, now) == reply
        return reply

    World(exchange).run(history)


@pytest.mark.process
def test_script_for_redis_survives_a_clock_that_is_set_back(redis_rules: RedisRules) -> None:
    table = Table()
    now = int(time.time() * 1000)
    for request, at in [
        (request_of("a", wants=30), now),
        (request_of("a", slots=ends(20)), now + 100),
        (request_of("b", wants=30), now - 3_600_000),
        (request_of("b", slots=ends(5), wants=9, first=31), now - 3_599_000),
    ]:
        reply = table.exchange(request, at)
        assert redis_rules.exchange(request, at) == reply
    assert reply.used == 49


@pytest.mark.process
def test_script_for_redis_closes_the_account(redis_rules: RedisRules) -> None:
    redis_rules.exchange(request_of("a", slots=[Slot(0, CLOSING, -2_000)]), NOW)
    assert redis_rules.exchange(request_of("b", wants=1), NOW).denials == [(ROUTE, 2_000)]
