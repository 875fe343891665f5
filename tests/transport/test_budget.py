"""The rate budget, on a virtual clock."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neonctl_async import ConfigurationError, OperationRef, RateBudget
from neonctl_async.transport.budget import Budget
from tests.support.platform import Platform
from tests.support.records import PROJECT, client_of
from tests.support.server import MisbehavingServer, Received, Respond, answer, in_turn
from tests.support.virtual_time import VirtualTimeLoop, now


class Wish(NamedTuple):
    """A request: when it is wished for, how long it is on its way, and how long it takes."""

    at: float
    route: str
    arrives_after: float = 0.0
    takes: float = 0.0
    is_poll: bool = False


async def spend(budget: Budget, wishes: Iterable[Wish]) -> list[tuple[float, str]]:
    """When each request arrives, and its route, in the order of arrival."""
    arrived: list[tuple[float, str]] = []

    async def one(wish: Wish) -> None:
        await asyncio.sleep(wish.at)
        if wish.is_poll:
            await budget.turn_of_poll()
        await budget.acquire(wish.route, is_poll=wish.is_poll)
        await asyncio.sleep(wish.arrives_after * wish.takes)
        arrived.append((now(), wish.route))
        await asyncio.sleep((1 - wish.arrives_after) * wish.takes)
        budget.release(wish.route)

    await asyncio.gather(*(one(wish) for wish in wishes))
    return arrived


def most_within(times: list[float], period: float) -> int:
    """The most events within any half-open window of ``period`` seconds."""
    return max(sum(start <= t < start + period for t in times) for start in times)


@given(
    st.lists(
        st.builds(
            Wish,
            st.floats(0, 3),
            st.sampled_from(["a", "b", "slow"]),
            st.floats(0, 1),
            st.floats(0, 2),
            st.booleans(),
        ),
        min_size=1,
    ),
    st.integers(1, 20),
    st.integers(1, 8),
    st.integers(1, 10),
)
@settings(max_examples=100)
def test_no_window_however_it_slides_holds_more_than_the_limit(
    wishes: list[Wish], per_minute: int, per_second: int, connections: int
) -> None:
    limits = RateBudget(
        per_minute=per_minute, per_second_of_route=per_second, per_second_of={"slow": 1}
    )
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        arrived = runner.run(spend(Budget(limits, connections), wishes))
    assert len(arrived) == len(wishes)
    assert most_within([time for time, _ in arrived], 60 - 1e-6) <= per_minute
    for route in {route for _, route in arrived}:
        times = [time for time, one in arrived if one == route]
        assert most_within(times, 1 - 1e-6) <= (1 if route == "slow" else per_second)


@pytest.mark.virtual_time
async def test_the_platforms_limits_are_the_default() -> None:
    arrived = await spend(
        Budget(RateBudget(), 10_000), (Wish(0.0, f"GET /{n % 30}") for n in range(701))
    )
    times = [time for time, _ in arrived]
    assert sum(time < 60 for time in times) == 700
    assert times[-1] == pytest.approx(60, abs=1)


@pytest.mark.virtual_time
async def test_a_route_has_40_a_second_and_creating_organization_keys_10() -> None:
    await spend(Budget(RateBudget(), 10_000), [Wish(0.0, "GET /projects")] * 41)
    assert now() == pytest.approx(1)
    await spend(Budget(RateBudget(), 10_000), [Wish(0.0, "POST /organizations/{id}/api_keys")] * 11)
    assert now() == pytest.approx(2)


@pytest.mark.virtual_time
async def test_a_request_that_may_have_arrived_late_makes_room_late() -> None:
    budget = Budget(RateBudget(per_minute=1), 100)
    arrived = await spend(
        budget, [Wish(0.0, "a", arrives_after=1.0, takes=5.0), Wish(1.0, "a", arrives_after=0.0)]
    )
    assert [time for time, _ in arrived] == pytest.approx([5, 65])


@pytest.mark.virtual_time
async def test_no_more_requests_are_under_way_than_there_are_connections() -> None:
    arrived = await spend(Budget(RateBudget.unlimited(), 3), [Wish(0.0, "a", takes=1.0)] * 7)
    assert [time for time, _ in arrived] == pytest.approx([0, 0, 0, 1, 1, 1, 2])


@pytest.mark.virtual_time
async def test_requests_go_in_the_order_they_were_wished_for() -> None:
    budget = Budget(RateBudget(per_minute=5), 100)
    order: list[int] = []

    async def one(number: int) -> None:
        await budget.acquire("GET /projects")
        order.append(number)
        budget.release("GET /projects")

    await asyncio.gather(*(one(number) for number in range(20)))
    assert order == sorted(order)
    assert now() == pytest.approx(180)


@pytest.mark.virtual_time
async def test_a_crowded_route_holds_up_no_other() -> None:
    budget = Budget(RateBudget(per_second_of={"slow": 1}), 100)
    crowd = asyncio.create_task(spend(budget, [Wish(0.0, "slow")] * 10))
    await asyncio.sleep(0)
    await budget.acquire("GET /projects")
    assert now() == 0
    await crowd
    assert now() == pytest.approx(9)


@pytest.mark.virtual_time
async def test_a_cancelled_request_takes_nothing_from_the_budget() -> None:
    budget = Budget(RateBudget(per_minute=1), 100)
    await spend(budget, [Wish(0.0, "GET /projects")])
    waiting = [asyncio.create_task(budget.acquire("GET /projects")) for _ in range(5)]
    await asyncio.sleep(30)
    for task in waiting[:4]:
        task.cancel()
    await asyncio.wait(waiting)
    assert now() == pytest.approx(60)


@pytest.mark.virtual_time
async def test_a_cancelled_poll_makes_way_for_the_next() -> None:
    budget = Budget(RateBudget(per_minute=1), 100)
    await spend(budget, [Wish(0.0, "a")])
    turns = [asyncio.create_task(budget.turn_of_poll()) for _ in range(3)]
    await asyncio.sleep(30)
    turns[0].cancel()
    await asyncio.wait(turns[:2])
    assert now() == pytest.approx(60)
    turns[2].cancel()
    await asyncio.wait(turns)
    await spend(budget, [Wish(0.0, "a")])
    assert now() == pytest.approx(60)


@pytest.mark.virtual_time
async def test_unlimited_lets_everything_go_at_once() -> None:
    wishes = [Wish(0.0, "a", is_poll=n % 2 == 0) for n in range(5000)]
    await spend(Budget(RateBudget.unlimited(), 10_000), wishes)
    assert now() == 0


@pytest.mark.virtual_time
async def test_a_callers_request_goes_before_polls_that_have_waited_longer() -> None:
    budget = Budget(RateBudget(per_minute=10), 100)
    await spend(budget, [Wish(0.0, "a")] * 10)
    polls = [Wish(0.0, "poll", is_poll=True)] * 5
    callers = [Wish(1.0, "caller")] * 5
    arrived = await spend(budget, [*polls, *callers])
    assert [route for _, route in arrived[:5]] == ["caller"] * 5
    assert [time for time, _ in arrived[:5]] == pytest.approx([60] * 5)


@pytest.mark.virtual_time
@pytest.mark.parametrize("route", ["elsewhere", "of polls"])
async def test_callers_without_end_leave_polls_a_tenth_of_the_minute(route: str) -> None:
    budget = Budget(RateBudget(per_minute=50), 100)
    callers, polls = await asyncio.gather(
        spend(budget, [Wish(0.0, route)] * 500),
        spend(budget, [Wish(0.1, "of polls", is_poll=True)] * 40),
    )
    for minute in range(2, 8):
        begin, end = minute * 60, (minute + 1) * 60
        assert sum(begin <= time < end for time, _ in polls) >= 5
        assert sum(begin <= time < end for time, _ in callers) >= 40


@pytest.mark.virtual_time
async def test_a_caller_of_the_same_route_goes_before_the_polls_that_wait_for_it() -> None:
    budget = Budget(RateBudget(per_second_of_route=1), 100)
    await spend(budget, [Wish(0.0, "a")])
    order: list[str] = []

    async def one(name: str, *, is_poll: bool) -> None:
        await budget.acquire("a", is_poll=is_poll)
        order.append(name)
        budget.release("a")

    await asyncio.gather(one("poll", is_poll=True), one("caller", is_poll=False))
    assert order == ["caller", "poll"]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("limits", "connections"),
    [
        (RateBudget(), 1),
        (RateBudget(), 5),
        (RateBudget(per_minute=None), 100),
        (RateBudget(per_second_of={"of polls": 5}), 100),
        (RateBudget(per_minute=9), 100),
        (RateBudget(per_minute=1), 100),
    ],
)
async def test_polls_get_through_whatever_is_scarce(limits: RateBudget, connections: int) -> None:
    budget = Budget(limits, connections)

    async def call() -> None:
        while True:
            await spend(budget, [Wish(0.0, "of polls", takes=1.0)])

    callers = [asyncio.create_task(call()) for _ in range(300)]
    await asyncio.sleep(1)
    arrived = await spend(budget, [Wish(0.0, "of polls", takes=0.1, is_poll=True)] * 5)
    for caller in callers:
        caller.cancel()
    await asyncio.wait(callers)
    assert len(arrived) == 5
    assert now() <= 60 * 10 * 6


@pytest.mark.virtual_time
async def test_a_callers_request_that_is_cancelled_holds_up_no_poll() -> None:
    budget = Budget(RateBudget(per_second_of_route=1), 100)
    await spend(budget, [Wish(0.0, "a")])
    caller = asyncio.create_task(budget.acquire("a"))
    poll = asyncio.create_task(budget.acquire("a", is_poll=True))
    await asyncio.sleep(0.5)
    caller.cancel()
    async with asyncio.timeout(5):
        await poll
    assert now() == pytest.approx(1)


@pytest.mark.virtual_time
async def test_no_poll_has_its_turn_while_one_waits_for_its_route() -> None:
    budget = Budget(RateBudget(per_second_of_route=1), 100)
    await spend(budget, [Wish(0.0, "a")])
    at_route = asyncio.create_task(budget.acquire("a", is_poll=True))
    turn = asyncio.create_task(budget.turn_of_poll())
    await asyncio.sleep(0.5)
    assert not turn.done()
    at_route.cancel()
    async with asyncio.timeout(5):
        await turn
    assert now() == pytest.approx(0.5)


@pytest.mark.virtual_time
async def test_polls_may_take_a_quarter_of_a_second_of_their_pace_at_once() -> None:
    budget = Budget(RateBudget(), 10_000)
    for idle, at_once in ((0.0, 22), (30.0, 19)):
        await asyncio.sleep(idle)
        asked = now()
        wishes = [Wish(0.0, f"GET /{n % 30}", is_poll=True) for n in range(100)]
        arrived = await spend(budget, wishes)
        assert sum(time < asked + 0.001 for time, _ in arrived) == pytest.approx(at_once, abs=2)


@pytest.mark.virtual_time
async def test_callers_of_a_crowded_route_hold_up_no_poll_of_another() -> None:
    budget = Budget(RateBudget(per_second_of={"slow": 1}), 100)
    crowd = asyncio.create_task(spend(budget, [Wish(0.0, "slow")] * 10))
    await asyncio.sleep(0.1)
    await spend(budget, [Wish(0.0, "poll", is_poll=True)])
    assert now() == pytest.approx(0.1)
    await crowd


@pytest.mark.virtual_time
@pytest.mark.parametrize("end", ["is cancelled", "sends nothing"])
async def test_a_poll_that_does_not_use_its_go_leaves_it_to_callers(end: str) -> None:
    budget = Budget(RateBudget(per_second_of={"of polls": 1}), connections=1)
    await spend(budget, [Wish(0.0, "of polls")])
    callers = asyncio.create_task(spend(budget, [Wish(0.0, "a", takes=0.01)] * 12))
    await asyncio.sleep(0.005)
    if end == "is cancelled":
        poll = asyncio.create_task(budget.acquire("of polls", is_poll=True))
        await asyncio.sleep(0.05)
        poll.cancel()
    else:
        poll = asyncio.create_task(budget.turn_of_poll())
    await callers
    await asyncio.wait([poll])
    assert now() == pytest.approx(0.12)


@pytest.mark.virtual_time
async def test_a_place_of_a_route_that_a_poll_took_meanwhile_is_not_taken_twice() -> None:
    budget = Budget(RateBudget(per_minute=12, per_second_of_route=1), 100)
    arrived = await spend(
        budget,
        [
            Wish(0.0, "a", arrives_after=0.0, takes=50.0),
            Wish(0.05, "a", is_poll=True),
            *(Wish(0.1 * number, f"of {number}") for number in range(1, 12)),
            Wish(0.5, "a"),
        ],
    )
    times = [time for time, route in arrived if route == "a"]
    assert times == pytest.approx([0.0, 60.1, 61.1], abs=0.01)


@pytest.mark.virtual_time
async def test_routes_of_long_ago_are_forgotten() -> None:
    budget = Budget(RateBudget(), 100)
    for number in range(1000):
        await spend(budget, [Wish(0.2, f"GET /of/{number}")])
    routes = vars(budget)["_routes"]
    assert len(routes) <= 101


@pytest.mark.virtual_time
async def test_polls_leave_something_for_a_caller_however_many_they_are() -> None:
    budget = Budget(RateBudget(), 10_000)
    polls = asyncio.create_task(
        spend(budget, (Wish(0.0, f"GET /{n % 30}", is_poll=True) for n in range(2000)))
    )
    for _ in range(15):
        await asyncio.sleep(7.7)
        asked = now()
        await spend(budget, [Wish(0.0, "caller")] * 2)
        assert now() - asked < 0.1
    await polls


@pytest.mark.virtual_time
async def test_polls_go_in_turn_and_at_a_pace_that_lasts() -> None:
    budget = Budget(RateBudget(), 10_000)
    arrived = await spend(budget, [Wish(0.0, f"GET /{n % 30}", is_poll=True) for n in range(2000)])
    times = [time for time, _ in arrived]
    assert [route for _, route in arrived] == [f"GET /{n % 30}" for n in range(2000)]
    assert sum(time < 1 for time in times) > 80
    per_minute = [sum(n * 60 <= time < (n + 1) * 60 for time in times) for n in (1, 2)]
    assert all(500 < count <= 700 for count in per_minute), per_minute


@pytest.mark.virtual_time
async def test_every_request_of_a_client_draws_on_one_budget() -> None:
    limits = RateBudget(per_minute=3)
    async with (
        MisbehavingServer(in_turn(answer(503), answer(content={}))) as server,
        client_of(server, budget=limits) as neon,
    ):
        await neon.request("GET", "/projects")  # two tries
        await neon.request("GET", "/regions")
        assert now() < 1
        await neon.request("POST", "/projects")
        assert now() == pytest.approx(60, abs=1)


@pytest.mark.virtual_time
async def test_the_ids_in_a_plain_request_do_not_make_it_a_route_of_its_own() -> None:
    limits = RateBudget(per_second_of_route=1)
    async with (
        MisbehavingServer(in_turn(answer(content={}))) as server,
        client_of(server, budget=limits) as neon,
    ):
        for number in range(3):
            await neon.request("GET", f"/projects/late-frost-{number}/advisors")
        assert now() == pytest.approx(2)


@pytest.mark.virtual_time
async def test_a_plain_request_and_a_method_share_the_window_of_their_route() -> None:
    limits = RateBudget(per_second_of={"POST /organizations/{id}/api_keys": 1})
    async with (
        MisbehavingServer(in_turn(answer(content={"id": 1, "key": "k"}))) as server,
        client_of(server, budget=limits) as neon,
    ):
        await neon.organizations.create_api_key("org-quiet-sun-12345678", key_name="ci")
        await neon.request("POST", "/organizations/org-quiet-sun-12345678/api_keys")
        assert now() == pytest.approx(1)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_lets_nothing_go_is_refused(limit: int) -> None:
    with pytest.raises(ConfigurationError, match="per_minute"):
        RateBudget(per_minute=limit)


@pytest.mark.virtual_time
@pytest.mark.parametrize(("ids", "requests"), [(["a"], 2), (["a", "b"], 2), (["a", "hidden"], 3)])
async def test_polls_draw_on_the_budget_as_every_request_does(
    ids: list[str], requests: int
) -> None:
    platform = Platform()
    platform.hidden = {"hidden"}
    for id in ids:
        platform.start(id, ends=0)
    async with (
        platform.server,
        client_of(platform.server, budget=RateBudget(per_minute=1)) as neon,
    ):
        await neon.operations.get(PROJECT, "a")
        await neon.operations.wait([OperationRef(project_id=PROJECT, id=id) for id in ids])
        assert now() == pytest.approx(60 * (requests - 1), abs=1)
    assert len(platform.server.received) == requests


@pytest.mark.virtual_time
async def test_requests_count_when_they_are_sent_not_while_they_queue_for_a_connection() -> None:
    arrivals: list[float] = []

    async def stall(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(max(0.0, 8 - now()))
        await answer(content={})(writer)

    def respond(_request: Received) -> Respond:
        arrivals.append(now())
        return stall

    async with (
        MisbehavingServer(respond) as server,
        client_of(server, budget=RateBudget(), max_connections=50) as neon,
    ):
        await asyncio.gather(*(neon.request("GET", "/projects") for _ in range(300)))
    assert len(arrivals) == 300
    assert most_within(arrivals, 1 - 1e-6) <= 40
