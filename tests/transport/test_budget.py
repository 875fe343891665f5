"""The rate budget, on a virtual clock."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neonctl_async import ConfigurationError, OperationRef, RateBudget
from neonctl_async.transport.budget import Budget
from tests.support.platform import Platform
from tests.support.records import PROJECT, client_of
from tests.support.server import MisbehavingServer, Received, Respond, answer, in_turn
from tests.support.virtual_time import VirtualTimeLoop, now


async def spend(budget: Budget, requests: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """When each request, wished for at a time, is let go."""
    let_go: list[tuple[float, str]] = []

    async def one(wished_at: float, route: str) -> None:
        await asyncio.sleep(wished_at)
        await budget.acquire(route)
        let_go.append((now(), route))

    await asyncio.gather(*(one(*request) for request in requests))
    return let_go


def most_within(times: list[float], period: float) -> int:
    """The most events within any half-open window of ``period`` seconds."""
    return max(sum(start <= t < start + period for t in times) for start in times)


@given(
    st.lists(st.tuples(st.floats(0, 3), st.sampled_from(["a", "b", "slow"])), min_size=1),
    st.integers(1, 20),
    st.integers(1, 8),
)
@settings(max_examples=50)
def test_no_window_however_it_slides_holds_more_than_the_limit(
    requests: list[tuple[float, str]], per_minute: int, per_second: int
) -> None:
    limits = RateBudget(
        per_minute=per_minute, per_second_of_route=per_second, per_second_of={"slow": 1}
    )
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        let_go = runner.run(spend(Budget(limits, 1000), requests))
    assert len(let_go) == len(requests)
    assert most_within([time for time, _ in let_go], 60 - 1e-6) <= per_minute
    for route in {route for _, route in requests}:
        times = [time for time, one in let_go if one == route]
        assert most_within(times, 1 - 1e-6) <= (1 if route == "slow" else per_second)


@pytest.mark.virtual_time
async def test_the_platforms_limits_are_the_default() -> None:
    let_go = await spend(
        Budget(RateBudget(), 10_000), [(0.0, f"GET /{n % 30}") for n in range(701)]
    )
    times = [time for time, _ in let_go]
    assert sum(time < 60 for time in times) == 700
    assert times[-1] == pytest.approx(60, abs=1)


@pytest.mark.virtual_time
async def test_a_route_has_40_a_second_and_creating_organization_keys_10() -> None:
    await spend(Budget(RateBudget(), 10_000), [(0.0, "GET /projects")] * 41)
    assert now() == pytest.approx(1)
    await spend(Budget(RateBudget(), 10_000), [(0.0, "POST /organizations/{id}/api_keys")] * 11)
    assert now() == pytest.approx(2)


@pytest.mark.virtual_time
async def test_requests_go_in_the_order_they_were_wished_for() -> None:
    budget = Budget(RateBudget(per_minute=5), 100)
    order: list[int] = []

    async def one(number: int) -> None:
        await budget.acquire("GET /projects")
        order.append(number)

    await asyncio.gather(*(one(number) for number in range(20)))
    assert order == sorted(order)


@pytest.mark.virtual_time
async def test_a_crowded_route_holds_up_no_other() -> None:
    budget = Budget(RateBudget(per_second_of={"slow": 1}), 100)
    crowd = [asyncio.create_task(budget.acquire("slow")) for _ in range(10)]
    await asyncio.sleep(0)
    await budget.acquire("GET /projects")
    assert now() == 0
    await asyncio.gather(*crowd)
    assert now() == pytest.approx(9)


@pytest.mark.virtual_time
async def test_a_cancelled_request_takes_nothing_from_the_budget() -> None:
    budget = Budget(RateBudget(per_minute=1), 100)
    await budget.acquire("GET /projects")
    waiting = [asyncio.create_task(budget.acquire("GET /projects")) for _ in range(5)]
    await asyncio.sleep(30)
    for task in waiting[:4]:
        task.cancel()
    await asyncio.wait(waiting)
    assert now() == pytest.approx(60)


@pytest.mark.virtual_time
async def test_unlimited_lets_everything_go_at_once() -> None:
    await spend(Budget(RateBudget.unlimited(), 10_000), [(0.0, "GET /projects")] * 5000)
    assert now() == 0


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
