"""Rate limits that other clients of the account use too, on a fake clock."""

import asyncio
from collections import deque

import pytest

from neonctl_async import RateBudget
from neonctl_async.transport.budget import Budget
from tests.support.clock import now

pytestmark = pytest.mark.virtual_time


class Server:
    """The rate limits of an account: 700 requests a minute, and 40 a second for each route."""

    def __init__(self) -> None:
        self.accepted: deque[tuple[float, str]] = deque()
        self.rejected = 0

    def accepts(self, route: str) -> bool:
        while self.accepted and self.accepted[0][0] + 60 <= now():
            self.accepted.popleft()
        second = sum(time > now() - 1 and name == route for time, name in self.accepted)
        if len(self.accepted) >= 700 or second >= 40:
            self.rejected += 1
            return False
        self.accepted.append((now(), route))
        return True


async def send(budget: Budget, server: Server, route: str, retry_after: float | None) -> None:
    """Send a request until the server accepts it."""
    while True:
        slot = await budget.acquire(route)
        await asyncio.sleep(0.05)
        is_accepted = server.accepts(route)
        await asyncio.sleep(0.05)
        slot.release()
        if is_accepted:
            return
        budget.hold_back(retry_after)


CONNECTIONS = 100


@pytest.mark.parametrize("retry_after", [None, 1.0])
@pytest.mark.parametrize("clients", [2, 4])
async def test_clients_of_one_account_slow_down_after_a_429_and_finish_soon(
    clients: int, retry_after: float | None
) -> None:
    server = Server()
    budgets = [Budget(RateBudget(), CONNECTIONS) for _ in range(clients)]
    await asyncio.gather(
        *(
            send(budget, server, "POST /projects/{id}/branches", retry_after)
            for budget in budgets
            for _ in range(300 // clients)
        )
    )
    at_once = (clients - 1) * 40
    assert server.rejected <= at_once + 5 * clients
    assert now() <= 7 * clients


@pytest.mark.parametrize(("retry_after", "trials"), [(None, 6), (1.0, 60)])
async def test_minute_that_another_client_has_used_costs_one_request_a_pause(
    retry_after: float | None, trials: int
) -> None:
    server = Server()
    server.accepted.extend([(now(), "of another client")] * 700)
    budget = Budget(RateBudget(), CONNECTIONS)
    await asyncio.gather(*(send(budget, server, f"GET /{n % 20}", retry_after) for n in range(300)))
    assert server.rejected <= CONNECTIONS + trials
    assert now() <= 60 + 20


async def test_poll_is_a_trial_too_and_a_cancelled_trial_delays_nothing() -> None:
    budget = Budget(RateBudget(), CONNECTIONS)
    budget.hold_back(None)
    trial = await budget.acquire("GET /a", is_poll=True)
    assert now() == pytest.approx(1)
    following = asyncio.create_task(budget.acquire("GET /b"))
    await asyncio.sleep(0.5)
    assert not following.done()
    trial.cancel()
    slot = await following
    assert now() == pytest.approx(1.5)
    slot.release()
