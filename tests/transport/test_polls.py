"""How polls and callers share the rate budget, on a virtual clock."""

import asyncio

import pytest

from neonctl_async import RateBudget
from neonctl_async.transport.budget import Budget
from tests.support.clock import now
from tests.transport.spending import Wish, spend


@pytest.mark.virtual_time
async def test_a_cancelled_poll_makes_way_for_the_next() -> None:
    budget = Budget(RateBudget(per_minute=1), 100)
    await spend(budget, [Wish(0.0, "a")])
    turns = [asyncio.create_task(budget.acquire_poll_slot()) for _ in range(3)]
    await asyncio.sleep(30)
    turns[0].cancel()
    await asyncio.wait(turns[:2])
    assert now() == pytest.approx(60)
    turns[2].cancel()
    await asyncio.wait(turns)
    await spend(budget, [Wish(0.0, "a")])
    assert now() == pytest.approx(60)


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
    budget = Budget(RateBudget(per_route_per_second=1), 100)
    await spend(budget, [Wish(0.0, "a")])
    order: list[str] = []

    async def one(name: str, **how: bool) -> None:
        await budget.acquire("a", **how)
        order.append(name)
        budget.release("a")

    await asyncio.gather(one("poll", is_poll=True), one("caller"))
    assert order == ["caller", "poll"]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("limits", "connections"),
    [
        (RateBudget(), 1),
        (RateBudget(), 5),
        (RateBudget(per_minute=None), 100),
        (RateBudget(route_limits={"of polls": 5}), 100),
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
    budget = Budget(RateBudget(per_route_per_second=1), 100)
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
    budget = Budget(RateBudget(per_route_per_second=1), 100)
    await spend(budget, [Wish(0.0, "a")])
    at_route = asyncio.create_task(budget.acquire("a", is_poll=True))
    slot = asyncio.create_task(budget.acquire_poll_slot())
    await asyncio.sleep(0.5)
    assert not slot.done()
    at_route.cancel()
    async with asyncio.timeout(5):
        await slot
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
    budget = Budget(RateBudget(route_limits={"slow": 1}), 100)
    crowd = asyncio.create_task(spend(budget, [Wish(0.0, "slow")] * 10))
    await asyncio.sleep(0.1)
    await spend(budget, [Wish(0.0, "poll", is_poll=True)])
    assert now() == pytest.approx(0.1)
    await crowd


@pytest.mark.virtual_time
@pytest.mark.parametrize("end", ["is cancelled", "sends nothing"])
async def test_a_poll_that_does_not_use_its_go_leaves_it_to_callers(end: str) -> None:
    budget = Budget(RateBudget(route_limits={"of polls": 1}), connections=1)
    await spend(budget, [Wish(0.0, "of polls")])
    callers = asyncio.create_task(spend(budget, [Wish(0.0, "a", takes=0.01)] * 12))
    await asyncio.sleep(0.005)
    if end == "is cancelled":
        poll = asyncio.create_task(budget.acquire("of polls", is_poll=True))
        await asyncio.sleep(0.05)
        poll.cancel()
    else:
        poll = asyncio.create_task(budget.acquire_poll_slot())
    await callers
    await asyncio.wait([poll])
    assert now() == pytest.approx(0.12)


@pytest.mark.virtual_time
async def test_a_place_of_a_route_that_a_poll_took_meanwhile_is_not_taken_twice() -> None:
    budget = Budget(RateBudget(per_minute=12, per_route_per_second=1), 100)
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
async def test_polls_leave_something_for_a_caller_however_many_they_are() -> None:
    budget = Budget(RateBudget(per_minute=140), 10_000)
    polls = asyncio.create_task(
        spend(budget, (Wish(0.0, f"GET /{n % 30}", is_poll=True) for n in range(300)))
    )
    for _ in range(15):
        await asyncio.sleep(7.7)
        asked = now()
        await spend(budget, [Wish(0.0, "caller")])
        assert now() - asked < 0.1
    await polls


@pytest.mark.virtual_time
async def test_polls_go_in_turn_and_at_a_pace_that_lasts() -> None:
    budget = Budget(RateBudget(per_minute=140), 10_000)
    arrived = await spend(budget, [Wish(0.0, f"GET /{n % 30}", is_poll=True) for n in range(400)])
    times = [time for time, _ in arrived]
    assert [route for _, route in arrived] == [f"GET /{n % 30}" for n in range(400)]
    assert 15 <= sum(time < 1 for time in times) <= 25
    for begin in (0, 30, 60, 90):
        assert 100 <= sum(begin <= time < begin + 60 for time in times) <= 140


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("limits", "connections"), [(RateBudget.unlimited(), 1), (RateBudget(per_minute=1), 100)]
)
async def test_a_single_poll_goes_before_the_tenth_caller_that_came_after_it(
    limits: RateBudget, connections: int
) -> None:
    first, later = Wish(0.0, "a", takes=1.0), Wish(0.6, "a", takes=1.0)
    poll = Wish(0.5, "poll", is_poll=True)
    arrived = await spend(Budget(limits, connections), [first, poll, *[later] * 12])
    assert [route for _, route in arrived].index("poll") == 1 + 9


@pytest.mark.virtual_time
async def test_a_poll_that_is_gone_keeps_no_caller_who_let_it_go_first() -> None:
    budget = Budget(RateBudget(per_minute=10, route_limits={"of polls": 1}), 100)
    await spend(budget, [Wish(0.0, "of polls")])
    poll = asyncio.create_task(budget.acquire("of polls", is_poll=True))
    await asyncio.sleep(0.1)
    await spend(budget, [Wish(0.0, "a")] * 9)
    poll.cancel()
    await asyncio.wait([poll])
    async with asyncio.timeout(100):
        await spend(budget, [Wish(0.0, "a")])
    assert now() == pytest.approx(60)


@pytest.mark.virtual_time
async def test_polls_use_up_what_is_left_of_the_minute_in_eight_seconds() -> None:
    polls = [Wish(0.0, "a", is_poll=True)] * 4
    arrived = await spend(Budget(RateBudget(per_minute=2), 100), polls)
    paced = [0.0, 8 / 2 - 0.25, 60.0, 60.0 + 8 / 1 - 0.25]
    assert [time for time, _ in arrived] == pytest.approx(paced, abs=0.01)


@pytest.mark.virtual_time
async def test_a_poll_that_callers_went_before_takes_the_next_place_of_the_minute() -> None:
    budget = Budget(RateBudget(per_minute=20), 100)
    earlier, later = [Wish(n / 10, "a") for n in range(1, 21)], [Wish(31.0, "a")] * 15
    arrived = await spend(budget, [*earlier, Wish(30.0, "poll", is_poll=True), *later])
    at, what = arrived[29]
    assert what == "poll"
    assert at == pytest.approx(60 + 10 / 10)


@pytest.mark.virtual_time
async def test_a_poll_that_callers_went_before_keeps_no_pace() -> None:
    budget = Budget(RateBudget(per_minute=12), 100)
    polls = [Wish(0.0, "poll", is_poll=True), Wish(0.05, "poll", is_poll=True)]
    arrived = await spend(budget, [*polls, *[Wish(0.1, "a")] * 10])
    assert [route for _, route in arrived] == ["poll", *["a"] * 9, "poll", "a"]
    assert arrived[-1][0] == pytest.approx(0.1, abs=0.01)


@pytest.mark.virtual_time
async def test_a_poll_that_callers_went_before_goes_while_they_are_under_way() -> None:
    budget = Budget(RateBudget(per_minute=700, per_route_per_second=None), 1000)
    await spend(budget, [Wish(0.0, "a")] * 670)
    callers = [Wish(0.1, "a", takes=5.0)] * 20
    arrived = await spend(budget, [Wish(0.0, "poll", is_poll=True), *callers])
    assert [route for _, route in arrived].index("poll") == 9
    assert arrived[-1][0] == pytest.approx(0.1, abs=0.01)


@pytest.mark.virtual_time
@pytest.mark.parametrize("scarce", ["connections", "what a 429 leaves"])
@pytest.mark.parametrize("step", ["turn", "request"])
async def test_neither_turn_nor_request_of_a_poll_comes_while_nothing_can_be_sent(
    scarce: str, step: str
) -> None:
    budget = Budget(RateBudget.unlimited(), connections=1)
    if scarce == "connections":
        await budget.acquire("a")
        asyncio.get_running_loop().call_later(5, budget.release, "a")
    else:
        budget.hold(5)
    await (budget.acquire_poll_slot() if step == "turn" else budget.acquire("b", is_poll=True))
    assert now() == pytest.approx(5)
