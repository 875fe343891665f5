"""The shares of polls and calls in the rate budget, on a fake clock."""

import asyncio

import pytest

from neonctl_async import RateBudget
from neonctl_async.transport.budget import Budget
from tests.support.clock import now
from tests.support.tasks import cancel
from tests.transport.budget_load import Planned, send_all

pytestmark = pytest.mark.virtual_time


async def test_cancelled_poll_leaves_its_slot_to_the_next_poll() -> None:
    budget = Budget(RateBudget(per_minute=1), 100)
    await send_all(budget, [Planned(0.0, "a")])
    polls = [asyncio.create_task(budget.acquire("a", is_poll=True)) for _ in range(3)]
    await asyncio.sleep(30)
    polls[0].cancel()
    await asyncio.wait(polls[:2])
    assert now() == pytest.approx(60)
    polls[1].result().cancel()
    await asyncio.wait(polls)
    polls[2].result().cancel()
    await send_all(budget, [Planned(0.0, "a")])
    assert now() == pytest.approx(60)


async def test_call_goes_before_polls_that_wait_longer() -> None:
    budget = Budget(RateBudget(per_minute=10), 100)
    await send_all(budget, [Planned(0.0, "a")] * 10)
    polls = [Planned(0.0, "poll", is_poll=True)] * 5
    calls = [Planned(1.0, "call")] * 5
    arrived = await send_all(budget, [*polls, *calls])
    assert [route for _, route in arrived[:5]] == ["call"] * 5
    assert [time for time, _ in arrived[:5]] == pytest.approx([60] * 5)


@pytest.mark.parametrize("route", ["other", "polled"])
async def test_endless_calls_leave_polls_a_tenth_of_the_minute(route: str) -> None:
    budget = Budget(RateBudget(per_minute=50), 100)
    calls, polls = await asyncio.gather(
        send_all(budget, [Planned(0.0, route)] * 500),
        send_all(budget, [Planned(0.1, "polled", is_poll=True)] * 100),
    )
    for minute in range(2, 8):
        start, end = minute * 60, (minute + 1) * 60
        assert sum(start <= time < end for time, _ in polls) >= 5
        assert sum(start <= time < end for time, _ in calls) >= 40


async def test_call_goes_before_a_poll_of_the_same_route() -> None:
    budget = Budget(RateBudget(per_route_per_second=1), 100)
    await send_all(budget, [Planned(0.0, "a")])
    order: list[str] = []

    async def send(name: str, *, is_poll: bool = False) -> None:
        slot = await budget.acquire("a", is_poll=is_poll)
        order.append(name)
        slot.release()

    await asyncio.gather(send("poll", is_poll=True), send("call"))
    assert order == ["call", "poll"]


@pytest.mark.parametrize(
    ("limits", "connections"),
    [
        (RateBudget(), 1),
        (RateBudget(), 5),
        (RateBudget(per_minute=None), 100),
        (RateBudget(route_limits={"polled": 5}), 100),
        (RateBudget(per_minute=9), 100),
        (RateBudget(per_minute=1), 100),
    ],
)
async def test_polls_make_progress_under_every_limit(limits: RateBudget, connections: int) -> None:
    budget = Budget(limits, connections)

    async def call_forever() -> None:
        while True:
            await send_all(budget, [Planned(0.0, "polled", duration=1.0)])

    tasks = [asyncio.create_task(call_forever()) for _ in range(300)]
    await asyncio.sleep(1)
    arrived = await send_all(budget, [Planned(0.0, "polled", duration=0.1, is_poll=True)] * 5)
    await cancel(*tasks)
    assert len(arrived) == 5
    assert now() <= 60 * 10 * 6


async def test_cancelled_call_delays_no_poll() -> None:
    budget = Budget(RateBudget(per_route_per_second=1), 100)
    await send_all(budget, [Planned(0.0, "a")])
    call = asyncio.create_task(budget.acquire("a"))
    poll = asyncio.create_task(budget.acquire("a", is_poll=True))
    await asyncio.sleep(0.5)
    call.cancel()
    async with asyncio.timeout(5):
        await poll
    assert now() == pytest.approx(1)


async def test_calls_to_a_busy_route_delay_no_poll_of_another_route() -> None:
    budget = Budget(RateBudget(route_limits={"slow": 1}), 100)
    busy = asyncio.create_task(send_all(budget, [Planned(0.0, "slow")] * 10))
    await asyncio.sleep(0.1)
    await send_all(budget, [Planned(0.0, "poll", is_poll=True)])
    assert now() == pytest.approx(0.1)
    await busy


async def test_busy_route_of_a_poll_delays_no_other_poll() -> None:
    budget = Budget(RateBudget(per_route_per_second=1), 100)
    polls = [Planned(0.0, route, is_poll=True) for route in ("a", "a", "b")]
    arrived = await send_all(budget, polls)
    assert arrived == [(0.0, "a"), (0.0, "b"), (pytest.approx(1), "a")]


@pytest.mark.parametrize("outcome", ["cancelled while it waits", "sends nothing"])
async def test_poll_that_sends_nothing_delays_no_call(outcome: str) -> None:
    budget = Budget(RateBudget(route_limits={"polled": 1}), connections=1)
    await send_all(budget, [Planned(0.0, "polled")])
    calls = asyncio.create_task(send_all(budget, [Planned(0.0, "a", duration=0.01)] * 12))
    await asyncio.sleep(0.005)
    if outcome == "sends nothing":
        (await budget.acquire("other", is_poll=True)).cancel()
    else:
        poll = asyncio.create_task(budget.acquire("polled", is_poll=True))
        await asyncio.sleep(0.05)
        await cancel(poll)
    await calls
    assert now() == pytest.approx(0.12)


async def test_slot_that_a_poll_took_is_not_used_by_a_waiting_call() -> None:
    budget = Budget(RateBudget(per_minute=12, per_route_per_second=1), 100)
    arrived = await send_all(
        budget,
        [
            Planned(0.0, "a", arrives_after=0.0, duration=50.0),
            Planned(0.05, "a", is_poll=True),
            *(Planned(0.1 * number, f"route {number}") for number in range(1, 12)),
            Planned(0.5, "a"),
        ],
    )
    times = [time for time, route in arrived if route == "a"]
    assert times == pytest.approx([0.0, 60.1, 61.1], abs=0.01)


@pytest.mark.parametrize(
    ("limits", "connections"), [(RateBudget.unlimited(), 1), (RateBudget(per_minute=1), 100)]
)
async def test_poll_goes_before_the_tenth_later_call(limits: RateBudget, connections: int) -> None:
    first, later = Planned(0.0, "a", duration=1.0), Planned(0.6, "a", duration=1.0)
    poll = Planned(0.5, "poll", is_poll=True)
    arrived = await send_all(Budget(limits, connections), [first, poll, *[later] * 12])
    assert [route for _, route in arrived].index("poll") == 1 + 9


async def test_cancelled_poll_that_was_due_delays_no_call() -> None:
    budget = Budget(RateBudget(per_minute=10, route_limits={"polled": 1}), 100)
    await send_all(budget, [Planned(0.0, "polled")])
    poll = asyncio.create_task(budget.acquire("polled", is_poll=True))
    await asyncio.sleep(0.1)
    await send_all(budget, [Planned(0.0, "a")] * 9)
    await cancel(poll)
    async with asyncio.timeout(100):
        await send_all(budget, [Planned(0.0, "a")])
    assert now() == pytest.approx(60)


async def test_due_poll_takes_the_next_slot_of_the_minute() -> None:
    budget = Budget(RateBudget(per_minute=20), 100)
    earlier, later = [Planned(n / 10, "a") for n in range(1, 21)], [Planned(31.0, "a")] * 15
    arrived = await send_all(budget, [*earlier, Planned(30.0, "poll", is_poll=True), *later])
    arrival, route = arrived[29]
    assert route == "poll"
    assert arrival == pytest.approx(60 + 10 / 10)


@pytest.mark.parametrize("limit", ["connections", "pause after a 429"])
async def test_poll_gets_no_slot_while_nothing_can_be_sent(limit: str) -> None:
    budget = Budget(RateBudget.unlimited(), connections=1)
    if limit == "connections":
        slot = await budget.acquire("a")
        asyncio.get_running_loop().call_later(5, slot.release)
    else:
        budget.hold_back(5)
    await budget.acquire("b", is_poll=True)
    assert now() == pytest.approx(5)
