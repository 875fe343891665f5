"""The rate budget, on a fake clock."""

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neonctl_async import OperationRef, RateBudget
from neonctl_async.testing import FakeClockLoop
from neonctl_async.transport.account import LocalAccount
from neonctl_async.transport.budget import Budget
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of, responding
from tests.support.server import OK, MisbehavingServer, Received, Respond, http_response
from tests.support.tasks import cancel
from tests.transport.budget_load import Planned, most_within, send_all

pytestmark = pytest.mark.virtual_time


@given(
    st.lists(
        st.builds(
            Planned,
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
def test_no_sliding_window_contains_more_requests_than_the_limit(
    requests: list[Planned], per_minute: int, per_second: int, connections: int
) -> None:
    limits = RateBudget(
        per_minute=per_minute, per_route_per_second=per_second, route_limits={"slow": 1}
    )
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        arrived = runner.run(send_all(Budget(limits, connections), requests))
    assert len(arrived) == len(requests)
    assert most_within([time for time, _ in arrived], 60 - 1e-6) <= per_minute
    for route in {route for _, route in arrived}:
        times = [time for time, arrived_route in arrived if arrived_route == route]
        assert most_within(times, 1 - 1e-6) <= (1 if route == "slow" else per_second)


async def test_default_limit_is_700_requests_in_60_seconds() -> None:
    arrived = await send_all(
        Budget(RateBudget(), 10_000), (Planned(0.0, f"GET /{n % 30}") for n in range(701))
    )
    times = [time for time, _ in arrived]
    assert sum(time < 60 for time in times) == 700
    assert times[-1] == pytest.approx(60, abs=1)


async def test_default_limit_per_second_is_40_and_10_for_organization_keys() -> None:
    await send_all(Budget(RateBudget(), 10_000), [Planned(0.0, "GET /projects")] * 41)
    assert now() == pytest.approx(1)
    await send_all(
        Budget(RateBudget(), 10_000), [Planned(0.0, "POST /organizations/{id}/api_keys")] * 11
    )
    assert now() == pytest.approx(2)


async def test_slot_becomes_free_one_period_after_the_response() -> None:
    budget = Budget(RateBudget(per_minute=1), 100)
    arrived = await send_all(
        budget,
        [Planned(0.0, "a", arrives_after=1.0, duration=5.0), Planned(1.0, "a", arrives_after=0.0)],
    )
    assert [time for time, _ in arrived] == pytest.approx([5, 65])


async def test_requests_in_flight_are_limited_by_the_connections() -> None:
    arrived = await send_all(
        Budget(RateBudget.unlimited(), 3), [Planned(0.0, "a", duration=1.0)] * 7
    )
    assert [time for time, _ in arrived] == pytest.approx([0, 0, 0, 1, 1, 1, 2])


async def test_requests_are_sent_in_the_order_of_the_calls() -> None:
    budget = Budget(RateBudget(per_minute=5), 100)
    order: list[int] = []

    async def send(number: int) -> None:
        slot = await budget.acquire("GET /projects")
        order.append(number)
        slot.release()

    await asyncio.gather(*(send(number) for number in range(20)))
    assert order == sorted(order)
    assert now() == pytest.approx(180)


async def test_busy_route_does_not_delay_other_routes() -> None:
    budget = Budget(RateBudget(route_limits={"slow": 1}), 100)
    busy = asyncio.create_task(send_all(budget, [Planned(0.0, "slow")] * 10))
    await asyncio.sleep(0)
    await budget.acquire("GET /projects")
    assert now() == 0
    await busy
    assert now() == pytest.approx(9)


async def test_cancelled_request_uses_no_slot() -> None:
    budget = Budget(RateBudget(per_minute=1), 100)
    await send_all(budget, [Planned(0.0, "GET /projects")])
    waiting = [asyncio.create_task(budget.acquire("GET /projects")) for _ in range(5)]
    await asyncio.sleep(30)
    for task in waiting[:4]:
        task.cancel()
    await asyncio.wait(waiting)
    assert now() == pytest.approx(60)


@pytest.mark.parametrize("is_poll", [True, False])
@pytest.mark.parametrize("turns", range(6))
async def test_cancellation_at_any_step_leaves_no_slot_occupied(
    turns: int, *, is_poll: bool
) -> None:
    budget = Budget(RateBudget.unlimited(), connections=1)
    slot = await budget.acquire("a")
    waiting = asyncio.create_task(budget.acquire("a", is_poll=is_poll))
    following = asyncio.create_task(budget.acquire("a", is_poll=is_poll))
    for turn in range(6):
        if turn == 2:
            slot.release()
        if turn == turns:
            waiting.cancel()
        await asyncio.sleep(0)
    if not waiting.cancelled():
        waiting.result().release()
    async with asyncio.timeout(1):
        (await following).cancel()
        await budget.acquire("a")


@pytest.mark.parametrize("is_cancelled_first", [True, False])
async def test_slot_granted_to_a_cancelled_task_goes_to_the_next(
    *, is_cancelled_first: bool
) -> None:
    budget = Budget(RateBudget.unlimited(), connections=1)
    slot = await budget.acquire("a")
    waiting = [asyncio.create_task(budget.acquire("a")) for _ in range(2)]
    await asyncio.sleep(0)
    if is_cancelled_first:
        waiting[0].cancel()
    slot.release()
    if not is_cancelled_first:
        waiting[0].cancel()
    async with asyncio.timeout(1):
        await waiting[1]
    assert waiting[0].cancelled()


async def test_slot_is_released_or_cancelled_only_once() -> None:
    budget = Budget(RateBudget(per_minute=10), connections=2)
    first, second = await budget.acquire("a"), await budget.acquire("a")
    assert budget.requests_last_minute() == 2
    for _ in range(2):
        first.cancel()
        first.release()
        assert budget.requests_last_minute() == 1
        second.release()
        second.cancel()
        assert budget.requests_last_minute() == 1
    await send_all(budget, [Planned(0.0, "a", duration=1.0)] * 3)
    assert now() == pytest.approx(2)


async def test_fewer_pending_projects_let_calls_continue_at_once() -> None:
    budget = Budget(RateBudget(per_minute=100), 100)
    for number in range(50):
        budget.note_wanted(f"project-{number}", polls=1)
    assert (budget.polls_left, budget.polls_wanted) == (100, 50)
    calls = asyncio.create_task(
        send_all(budget, [Planned(0.0, f"POST /{n % 9}") for n in range(70)])
    )
    await asyncio.sleep(5)
    assert budget.requests_last_minute() == 50
    for number in range(50):
        budget.note_wanted(f"project-{number}", polls=0)
    async with asyncio.timeout(1):
        await calls


async def test_no_polls_are_wanted_once_no_project_has_pending_waits() -> None:
    budget = Budget(RateBudget(per_minute=100), 100)
    for polls in (4.3, 4.9, 1.5):
        budget.note_wanted(f"project-{polls}", polls=polls)
    for polls in (4.3, 4.9, 1.5):
        budget.note_wanted(f"project-{polls}", polls=0)
    assert budget.polls_wanted == 0


class ChangingAccount(LocalAccount):
    """An account whose free slots are known only after a change."""

    has_slots = False
    is_closed = False

    def free_at(self, route: str, now: float, *, waiting: int) -> float:
        return super().free_at(route, now, waiting=waiting) if self.has_slots else math.inf

    async def aclose(self) -> None:
        self.is_closed = True


async def test_change_of_the_account_gives_out_slots() -> None:
    account = ChangingAccount(RateBudget())
    budget = Budget(RateBudget(), 100, account)
    waiting = asyncio.create_task(budget.acquire("a"))
    await asyncio.sleep(5)
    assert not waiting.done()
    account.has_slots = True
    account.on_change()
    await waiting
    assert now() == pytest.approx(5)
    await budget.aclose()
    assert account.is_closed


async def test_closed_budget_leaves_no_timer() -> None:
    budget = Budget(RateBudget(per_minute=1), 100)
    await send_all(budget, [Planned(0.0, "a")])
    waiting = asyncio.create_task(budget.acquire("a"))
    await asyncio.sleep(1)
    await budget.aclose()
    await asyncio.sleep(100)
    assert not waiting.done()
    await cancel(waiting)


async def test_unlimited_budget_delays_no_request() -> None:
    requests = [Planned(0.0, "a", is_poll=n % 2 == 0) for n in range(1000)]
    await send_all(Budget(RateBudget.unlimited(), 10_000), requests)
    assert now() == 0


@pytest.mark.parametrize(
    ("connections", "busy", "arrivals"),
    [
        (
            1,
            [Planned(0.0, "first", duration=5.0), Planned(1.0, "busy"), Planned(3.0, "busy")],
            [5.0, 6.0],
        ),
        (1000, [Planned(0.0, "busy", duration=5.0), Planned(3.0, "busy")], [0.0, 6.0]),
        (1000, [Planned(1.5, "busy"), Planned(2.1, "busy")], [1.5, 2.5]),
    ],
    ids=["waiting", "in flight", "used recently"],
)
async def test_window_of_a_route_in_use_is_kept(
    connections: int, busy: list[Planned], arrivals: list[float]
) -> None:
    budget = Budget(RateBudget(per_minute=None, route_limits={"busy": 1}), connections)
    arrived = await send_all(
        budget, [*busy, *(Planned(2.0, f"GET /route/{n}") for n in range(150))]
    )
    times = [time for time, route in arrived if route == "busy"]
    assert times == pytest.approx(arrivals, abs=0.01)


async def test_all_requests_of_a_client_share_one_budget() -> None:
    async with responding(http_response(503), OK, budget=RateBudget(per_minute=3)) as (_, neon):
        await neon.request("GET", "/projects")  # two attempts
        await neon.request("GET", "/regions")
        assert now() < 1
        await neon.request("POST", "/projects")
        assert now() == pytest.approx(60, abs=1)


async def test_raw_requests_with_different_ids_share_one_route() -> None:
    async with responding(OK, budget=RateBudget(per_route_per_second=1)) as (_, neon):
        for number in range(3):
            await neon.request("GET", f"/projects/late-frost-{number}/advisors")
        assert now() == pytest.approx(2)


async def test_raw_request_and_method_share_one_route() -> None:
    limits = RateBudget(route_limits={"POST /organizations/{id}/api_keys": 1})
    async with responding(http_response(content={"id": 1, "key": "k"}), budget=limits) as (_, neon):
        await neon.organizations.create_api_key("org-quiet-sun-12345678", key_name="ci")
        await neon.request("POST", "/organizations/org-quiet-sun-12345678/api_keys")
        assert now() == pytest.approx(1)


@pytest.mark.parametrize(("ids", "requests"), [(["a"], 2), (["a", "b"], 2), (["a", "hidden"], 3)])
async def test_polls_use_the_budget(fake_neon: FakeNeon, ids: list[str], requests: int) -> None:
    fake_neon.hidden = {"hidden"}
    for id in ids:
        fake_neon.start(id, ends=0)
    async with client_of(fake_neon, budget=RateBudget(per_minute=1)) as neon:
        await neon.operations.get(PROJECT, "a")
        await neon.operations.wait([OperationRef(project_id=PROJECT, id=id) for id in ids])
        assert now() == pytest.approx(60 * (requests - 1), abs=1)
    assert len(fake_neon.received) == requests


async def test_request_counts_from_sending_and_not_from_queueing() -> None:
    arrivals: list[float] = []

    async def stall(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(max(0.0, 8 - now()))
        await OK(writer)

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
