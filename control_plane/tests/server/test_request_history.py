"""The last requests with their details, and the use of the rate limits."""

import asyncio

import pytest

from control_plane.tests.client import Client, state_of
from neonctl_local import Fault, ManualClock, RateLimits
from neonctl_local.clock import SECOND
from neonctl_local.server.request_history import (
    DETAILED_REQUESTS,
    UNMATCHED,
    AnsweredRequest,
    RequestHistory,
    Usage,
)

LIST = "GET /projects"
CREATE_KEY = "POST /organizations/{org_id}/api_keys"


def last_request(api: Client) -> AnsweredRequest:
    """Return the newest request."""
    return state_of(api.control_plane).history.answered[-1]


async def test_request_is_remembered_with_its_key_and_account(
    api: Client, clock: ManualClock
) -> None:
    clock.advance(5)
    await api.get("/projects?limit=1")
    request = last_request(api)
    assert (request.method, request.path, request.status) == ("GET", "/projects", 200)
    assert (request.account, request.key_id) == (api.control_plane.user_id, 1)
    assert (request.number, request.at) == (1, state_of(api.control_plane).now())
    assert request.seconds > 0
    assert not request.has_fault


async def test_request_without_a_valid_key_belongs_to_no_account(api: Client) -> None:
    await api.send("GET", "/projects", key="napi_unknown")
    request = last_request(api)
    assert (request.status, request.account, request.key_id) == (401, "", None)


async def test_request_shows_that_a_fault_fired(api: Client) -> None:
    injected = api.control_plane.inject(Fault(status=503))
    await api.send("GET", "/projects")
    assert (last_request(api).status, last_request(api).has_fault) == (503, True)
    state_of(api.control_plane).faults.remove(injected.number)
    await api.send("GET", "/projects")
    assert (last_request(api).status, last_request(api).has_fault) == (200, False)


async def test_key_in_a_path_is_masked(api: Client) -> None:
    await api.send("GET", f"/projects/{api.key}")
    assert api.key not in last_request(api).path


async def test_reset_forgets_the_details_too(api: Client) -> None:
    await api.get("/projects")
    await api.control_plane.reset()
    assert not state_of(api.control_plane).history.answered
    assert state_of(api.control_plane).usage(api.control_plane.user_id).minute == 0


async def test_tenants_remember_their_own_requests(api: Client) -> None:
    tenant = await api.control_plane.add_tenant()
    await api.send("GET", "/projects", key=tenant.api_key)
    assert not state_of(api.control_plane).history.answered
    assert [request.path for request in state_of(tenant).history.answered] == ["/projects"]


async def test_use_is_counted_without_enforced_limits(api: Client, clock: ManualClock) -> None:
    for _ in range(3):
        await api.get("/projects")
        clock.advance(0.4)
    await api.get("/users/me")
    await api.send("GET", "/nowhere")
    state, account = state_of(api.control_plane), api.control_plane.user_id
    assert not state.enforces_limits
    assert state.usage(account) == Usage(
        minute=5, minute_limit=700, busiest_route=LIST, second=3, second_limit=40
    )
    clock.advance(58.81)
    assert state.usage(account).minute == 4
    clock.advance(60)
    assert state.usage(account) == Usage(minute=0, minute_limit=700, second_limit=40)


@pytest.mark.control_plane(rate_limits=RateLimits(account_per_minute=2))
async def test_rejected_request_does_not_use_the_limits(api: Client) -> None:
    statuses = [(await api.send("GET", "/projects")).status for _ in range(4)]
    assert statuses == [200, 200, 429, 429]
    usage = state_of(api.control_plane).usage(api.control_plane.user_id)
    assert state_of(api.control_plane).enforces_limits
    assert (usage.minute, usage.minute_limit) == (2, 2)


def test_busiest_route_is_the_one_closest_to_its_limit() -> None:
    history = RequestHistory()
    for number in range(9):
        history.count("me", LIST, number)
        history.count("me", CREATE_KEY, number)
        history.count("me", f"GET /nowhere/{number}", number)
        history.count("another", LIST, number)
    usage = history.usage("me", RateLimits(), SECOND // 2)
    assert (usage.minute, usage.busiest_route) == (27, CREATE_KEY)
    assert (usage.second, usage.second_limit) == (9, 10)
    history.clear()
    for number in range(9):
        history.count("me", f"GET /nowhere/{number}", number)
    assert history.usage("me", RateLimits(), SECOND).busiest_route == UNMATCHED


def test_requests_a_second_apart_do_not_add_up() -> None:
    history = RequestHistory()
    for at in (0, SECOND - 1, SECOND, 2 * SECOND):
        history.count("me", LIST, at)
    assert history.usage("me", RateLimits(), 3 * SECOND).second == 2


def answered(number: int) -> AnsweredRequest:
    """Return a request."""
    return AnsweredRequest(number=number, at=0, method="GET", path="/", status=200, seconds=0)


def test_only_the_last_requests_are_remembered() -> None:
    history = RequestHistory()
    for number in range(DETAILED_REQUESTS + 5):
        history.add(answered(number))
    assert len(history.answered) == DETAILED_REQUESTS
    assert history.answered[0].number == 5


async def test_requests_that_follow_each_other_share_a_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("neonctl_local.server.request_history.NOTICE_DELAY", 0.01)
    history = RequestHistory()
    history.add(answered(0))
    changed = history.changed
    assert history.changed is changed
    history.add(answered(1))
    history.add(answered(2))
    assert not changed.is_set()
    await asyncio.wait_for(changed.wait(), 5)
    later = history.changed
    assert not later.is_set()
    history.clear()
    await asyncio.wait_for(later.wait(), 5)
