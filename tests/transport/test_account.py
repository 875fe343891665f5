"""The account of one client. Times are numbers."""

import math

import pytest

from neonctl_async import RateBudget
from neonctl_async.transport.account import Account, LocalAccount


def send(account: Account, route: str, now: float) -> None:
    """Send a request whose response arrives at once."""
    assert account.free_at(route, now, waiting=1) <= now
    account.take(route, now)
    account.release(route, now)


def test_calls_and_polls_use_the_same_slots() -> None:
    account = LocalAccount(RateBudget(per_minute=2, per_route_per_second=None))
    send(account, "a", 1.0)
    send(account, "b", 2.0)
    assert account.limit == 2
    assert (account.used(2.0), account.free(2.0)) == (2, 0)
    assert account.free_at("a", 2.0, waiting=1) == 61.0
    assert [account.refill_at(2.0, slots) for slots in (1, 2)] == [61.0, 62.0]
    assert (account.used(61.0), account.free(61.0)) == (1, 1)
    assert account.refill_at(62.0, 2) == -math.inf


def test_limit_of_a_route_delays_requests_to_this_route() -> None:
    account = LocalAccount(RateBudget(route_limits={"slow": 1}, per_route_per_second=2))
    for route in ("slow", "a", "a", "b"):
        send(account, route, 5.0)
    at = {route: account.free_at(route, 5.5, waiting=1) for route in ("slow", "a", "b", "c")}
    assert at == {"slow": 6.0, "a": 6.0, "b": -math.inf, "c": -math.inf}


def test_later_of_both_windows_delays_a_request() -> None:
    account = LocalAccount(RateBudget(per_minute=2, per_route_per_second=1))
    send(account, "a", 0.0)
    send(account, "a", 59.5)
    assert account.free_at("b", 59.6, waiting=1) == 60.0
    assert account.free_at("a", 59.6, waiting=1) == 60.5


def test_cancelled_request_occupies_no_slot() -> None:
    account = LocalAccount(RateBudget(per_minute=1, per_route_per_second=1))
    account.take("a", 0.0)
    assert account.free_at("a", 0.0, waiting=1) == math.inf
    account.cancel("a", 0.0)
    assert account.used(0.0) == 0
    send(account, "a", 0.0)


def test_only_a_limited_route_has_a_window() -> None:
    account = LocalAccount(RateBudget(per_minute=None, per_route_per_second=None))
    for _ in range(1000):
        send(account, "slow", 0.0)
    assert account.limit is None
    assert (account.used(0.0), account.free(0.0)) == (1000, math.inf)
    limits = RateBudget(per_minute=None, per_route_per_second=None, route_limits={"slow": 1})
    account = LocalAccount(limits)
    for _ in range(1000):
        send(account, "a", 0.0)
    account.take("a", 0.0)
    account.cancel("a", 0.0)
    send(account, "slow", 0.0)
    assert account.free_at("slow", 0.0, waiting=1) == 1.0


def test_windows_of_idle_routes_are_deleted() -> None:
    account = LocalAccount(RateBudget(per_minute=None))
    for number in range(250):
        send(account, f"GET /route/{number}", 0.2 * number)
        assert len(vars(account)["_routes"]) <= 100


@pytest.mark.parametrize("is_in_flight", [True, False])
def test_window_of_a_route_in_use_is_kept(*, is_in_flight: bool) -> None:
    account = LocalAccount(RateBudget(per_minute=None, per_route_per_second=1))
    account.take("busy", 0.0)
    if not is_in_flight:
        account.release("busy", 1.5)
    for number in range(250):
        send(account, f"GET /route/{number}", 2.0)
    assert account.free_at("busy", 2.0, waiting=1) == (math.inf if is_in_flight else 2.5)


def test_route_is_counted_although_many_others_were_checked_in_between() -> None:
    account = LocalAccount(RateBudget(per_minute=None, per_route_per_second=1))
    assert account.free_at("a", 0.0, waiting=1) <= 0.0
    for number in range(250):
        assert account.free_at(f"GET /route/{number}", 0.0, waiting=1) <= 0.0
    account.take("a", 0.0)
    assert account.free_at("a", 0.0, waiting=1) == math.inf


async def test_local_account_needs_no_closing() -> None:
    account = LocalAccount(RateBudget())
    account.on_change()
    await account.aclose()
