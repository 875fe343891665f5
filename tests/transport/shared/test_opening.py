"""The account that the settings of a client name."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from neonctl_async import (
    ConfigurationError,
    NeonClient,
    PollPolicy,
    RateBudget,
    RetryPolicy,
    Timeout,
)
from neonctl_async.config import Config
from neonctl_async.models.secret import Secret
from neonctl_async.transport.account import LocalAccount
from neonctl_async.transport.calls import GRACE_SECONDS
from neonctl_async.transport.shared.account import SharedAccount
from neonctl_async.transport.shared.opening import open_account
from neonctl_async.transport.shared.table import VALID
from neonctl_local import LocalControlPlane
from tests.support.clock import now
from tests.support.records import API_KEY


def config_of(budget: RateBudget) -> Config:
    return Config(
        api_key=Secret(API_KEY),
        base_url="https://neon.example/api",
        timeout=Timeout(),
        retry=RetryPolicy(),
        budget=budget,
        polling=PollPolicy(),
        hooks=(),
        max_connections=10,
        max_response_bytes=1000,
        ca_file=None,
        trust_env=False,
    )


async def test_clients_share_the_budget_of_a_file(
    tmp_path: Path, control_plane: LocalControlPlane
) -> None:
    budget = RateBudget.shared(f"sqlite:///{tmp_path}/budget.db", per_route_per_second=8)
    one, other = (
        NeonClient(control_plane.api_key, base_url=control_plane.base_url, budget=budget)
        for _ in range(2)
    )
    started = now()
    async with one, other:
        await asyncio.gather(*(client.users.me() for client in (one, other) for _ in range(12)))
        assert one.requests_last_minute == 12
    assert now() - started >= 2


def test_client_without_a_store_has_an_account_of_its_own() -> None:
    assert isinstance(open_account(config_of(RateBudget())), LocalAccount)


@pytest.mark.parametrize("url", ["sqlite:///budget.db", "redis://localhost"])
def test_client_with_a_store_has_a_shared_account(url: str) -> None:
    assert isinstance(open_account(config_of(RateBudget.shared(url))), SharedAccount)


async def test_slot_of_a_killed_client_counts_until_its_request_is_over(tmp_path: Path) -> None:
    """Its request ends after its timeout and twice the grace for a loop that was blocked."""
    file = tmp_path / "budget.db"
    account = open_account(config_of(RateBudget.shared(f"sqlite:///{file}")))
    changed = asyncio.Event()
    account.on_change = changed.set
    account.free_at("GET /projects", now(), waiting=1)
    await changed.wait()
    [(milliseconds,)] = await asyncio.to_thread(read, file, "SELECT ended_at - taken_at FROM slots")
    assert milliseconds == VALID + 1000 * (Timeout().total + 2 * GRACE_SECONDS)
    await account.aclose()


def read(file: Path, query: str) -> list[tuple[float]]:
    with closing(sqlite3.connect(file)) as db:
        return db.execute(query).fetchall()


def test_wrong_option_of_a_redis_url_is_refused_without_the_password() -> None:
    budget = RateBudget.shared("redis://:correct-horse@localhost/0?socket_timeout=soon")
    with pytest.raises(
        ConfigurationError, match="redis://localhost/0 has a wrong option"
    ) as caught:
        NeonClient(API_KEY, budget=budget)
    assert "correct-horse" not in str(caught.value)
    assert caught.value.__suppress_context__
