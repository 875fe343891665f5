"""The address of a shared rate budget."""

import importlib.util
from pathlib import Path

import pytest

from neonctl_async import ConfigurationError, RateBudget
from neonctl_async.config import EXPECTED_STORE_URLS, BudgetStore
from neonctl_async.models.secret import Secret

PASSWORD = "correct-horse"


def store_of(url: str, account: str | None = None) -> BudgetStore:
    return BudgetStore(url=Secret(url), account=account)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///var/lib/budget.db", "/var/lib/budget.db"),
        ("sqlite:////var/lib/budget.db", "/var/lib/budget.db"),
        ("sqlite:///with space/100 %#1.db", "/with space/100 %#1.db"),
        ("sqlite:///C:/data/budget.db", "C:/data/budget.db"),
        ("sqlite:///~/budget.db", "~/budget.db"),
    ],
)
def test_path_of_a_file(url: str, path: str) -> None:
    assert store_of(url).path == Path(path).expanduser()
    assert not store_of(url).is_redis


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("redis://localhost", "redis://localhost"),
        (f"redis://user:{PASSWORD}@cache.example:6380/2?ssl=1", "redis://cache.example:6380/2"),
        (f"rediss://:{PASSWORD}@cache.example/0", "rediss://cache.example/0"),
        (f"unix:///run/redis.sock?password={PASSWORD}", "unix:///run/redis.sock"),
    ],
)
def test_name_of_a_server_contains_no_password(url: str, name: str) -> None:
    budget = RateBudget.shared(url)
    assert budget.store is not None
    assert budget.store.name == name
    assert budget.store.is_redis
    assert PASSWORD not in repr(budget)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("budget.db", f"has no scheme: expected {EXPECTED_STORE_URLS}"),
        ("mysql://host/db", f"has the scheme 'mysql': expected {EXPECTED_STORE_URLS}"),
        ("sqlite:budget.db", "names no file: expected three slashes and a path"),
        ("sqlite:///", "names no file"),
        ("sqlite://host/budget.db", "names no file"),
        ("sqlite:///budget.db?mode=ro", "names no file"),
        ("unix://", "names no socket: expected unix:///path/to/socket"),
        ("redis://", "names no host or no port: expected redis://host:port/db"),
        ("redis://host:0", "names no host or no port"),
        ("redis://host/one", "has a database that is not a number"),
        (f"redis://:{PASSWORD}@host:port/0", f"is not a valid URL: expected {EXPECTED_STORE_URLS}"),
        (f"redis://:{PASSWORD}/x@host:1/0", "is not a valid URL"),
    ],
)
def test_wrong_url_is_refused_without_its_password(url: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        RateBudget.shared(url)
    assert f"the URL of a shared rate budget {message}" in str(caught.value)
    assert PASSWORD not in str(caught.value)
    traceback = caught.value.__traceback__
    while traceback is not None:
        values = traceback.tb_frame.f_locals
        is_library = "neonctl_async" in traceback.tb_frame.f_code.co_filename.split("tests")[0]
        assert not is_library or PASSWORD not in repr(values)
        traceback = traceback.tb_next


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": 5}, "the URL of a shared rate budget is not a string"),
        ({"account": 5}, "the account name of a shared rate budget is not a string or None"),
        ({"account": ""}, "the account name of a shared rate budget is empty"),
        ({"fallback_parts": 1.5}, "the fallback_parts of a shared rate budget is not an integer"),
        ({"fallback_parts": 0}, "fallback_parts of a shared rate budget is 0: expected 1 or more"),
    ],
)
def test_wrong_setting_is_refused(settings: dict[str, object], message: str) -> None:
    values: dict[str, object] = {"url": "sqlite:///budget.db", **settings}
    with pytest.raises(ConfigurationError, match=message):
        RateBudget.shared(**values)  # type: ignore[arg-type] # wrong on purpose


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)
    with pytest.raises(ConfigurationError, match=r"pip install 'neonctl-async\[redis\]'"):
        RateBudget.shared("redis://localhost")
    RateBudget.shared("sqlite:///budget.db")


def test_clients_share_an_account_if_key_and_base_url_are_the_same() -> None:
    store = store_of("sqlite:///budget.db")
    account = store.account_id(Secret("key"), "https://neon.example/api")
    assert account == store.account_id(Secret("key"), "https://NEON.example/api")
    assert account != store.account_id(Secret("other"), "https://neon.example/api")
    assert account != store.account_id(Secret("key"), "https://other.example/api")
    assert len(account) == 32
    assert "key" not in account


def test_clients_with_the_same_account_name_share_whatever_their_keys() -> None:
    store = store_of("sqlite:///budget.db", account="production")
    account = store.account_id(Secret("key"), "https://neon.example/api")
    assert account == store.account_id(Secret("other"), "https://neon.example/api")
    assert account != store.account_id(Secret("key"), "https://other.example/api")
    named_otherwise = store_of("sqlite:///budget.db", account="staging")
    assert account != named_otherwise.account_id(Secret("key"), "https://neon.example/api")


def test_limits_of_a_shared_budget_can_be_set() -> None:
    budget = RateBudget.shared(
        "sqlite:///budget.db", per_minute=60, per_route_per_second=None, route_limits={"GET /a": 2}
    )
    assert budget.per_minute == 60
    assert budget.limit_of("GET /a") == 2
    assert budget.limit_of("GET /b") is None
    assert RateBudget.shared("sqlite:///budget.db").route_limits == RateBudget().route_limits


def test_part_of_a_shared_budget_uses_the_same_store() -> None:
    budget = RateBudget.shared("sqlite:///budget.db").split(2)
    assert budget.per_minute == 350
    assert budget.store == store_of("sqlite:///budget.db")
