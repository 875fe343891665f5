"""Settings from arguments and the environment."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from neonctl_async import (
    ConfigurationError,
    NeonClient,
    PollPolicy,
    RateBudget,
    RetryPolicy,
    Secret,
    Timeout,
)
from tests.support.records import API_KEY
from tests.support.server import MisbehavingServer, http_response

NAN, INF = float("nan"), float("inf")
NEON = "https://console.neon.tech/api/v2"


async def authorization_of(*args: str | Secret) -> str:
    """Return the ``Authorization`` header that a client created with ``args`` sends."""
    async with MisbehavingServer(lambda _request: http_response(200, [])) as server:
        async with NeonClient(*args, base_url=server.base_url) as neon:
            await neon.api_keys.list()
        return server.received[0].headers["authorization"]


async def test_key_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_KEY", API_KEY)
    assert await authorization_of() == f"Bearer {API_KEY}"


async def test_key_argument_overrides_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_KEY", "napi_of_somebody_else")
    assert await authorization_of(API_KEY) == f"Bearer {API_KEY}"


async def test_key_may_be_a_secret() -> None:
    assert await authorization_of(Secret(API_KEY)) == f"Bearer {API_KEY}"


async def test_whitespace_around_a_key_is_removed() -> None:
    assert await authorization_of(f" {API_KEY}\r\n") == f"Bearer {API_KEY}"


@pytest.mark.parametrize("key", ["", " ", "\n"])
def test_missing_key_raises_an_error_that_names_both_ways_to_pass_it(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("NEON_API_KEY", key)
    for argument in (None, key):
        with pytest.raises(ConfigurationError, match=r"NEON_API_KEY.*api_key="):
            NeonClient(argument)


@pytest.mark.parametrize(
    "key",
    [
        *("napi hunter2", "napi\nhunter2", "napi\x00hunter2", "näpi_hunter2", "\ud800hunter2"),
        *('"napi_hunter2"', "'napi_hunter2'", "Bearer napi_hunter2", "<napi_hunter2>"),
        *("https://console.neon.tech/hunter2", "NEON_API_KEY:hunter2", "napi=hunter2"),
    ],
)
def test_key_that_is_no_bearer_token_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigurationError, match="API key") as caught:
        NeonClient(key)
    assert "hunter2" not in str(caught.value)


def test_base_url_comes_from_the_argument_or_the_environment_or_is_neons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert NeonClient(API_KEY).base_url == NEON
    monkeypatch.setenv("NEON_API_HOST", "")
    assert NeonClient(API_KEY).base_url == NEON
    monkeypatch.setenv("NEON_API_HOST", "https://neon.example.com/api/v2")
    assert NeonClient(API_KEY).base_url == "https://neon.example.com/api/v2"
    client = NeonClient(API_KEY, base_url="https://other.example.com/api/v2")
    assert client.base_url == "https://other.example.com/api/v2"


@pytest.mark.parametrize(
    ("base_url", "normalized"),
    [
        ("https://h.example.com/api/v2/", "https://h.example.com/api/v2"),
        ("https://h.example.com//", "https://h.example.com"),
        ("\thttps://h.example.com/api/v2\n", "https://h.example.com/api/v2"),
        ("https://h.example.com:8443/api/v2", "https://h.example.com:8443/api/v2"),
        ("http://127.0.0.1:8080/api/v2", "http://127.0.0.1:8080/api/v2"),
        ("http://127.8.8.8/api/v2", "http://127.8.8.8/api/v2"),
        ("http://localhost/api/v2", "http://localhost/api/v2"),
        ("http://LOCALHOST/api/v2", "http://LOCALHOST/api/v2"),
        ("http://[::1]:8080/api/v2/", "http://[::1]:8080/api/v2"),
        ("https://[2001:db8::1]/api/v2", "https://[2001:db8::1]/api/v2"),
    ],
)
def test_valid_base_url_is_normalized(base_url: str, normalized: str) -> None:
    assert NeonClient(API_KEY, base_url=base_url).base_url == normalized


@pytest.mark.parametrize(
    "url",
    [
        *("http://0.0.0.0/api/v2", "http://192.168.0.1/api/v2", "http://[2001:db8::1]/api/v2"),
        *("http://localhost.example.com/api/v2", "http://127.0.0.1.example.com/api/v2"),
        *("http://console.neon.tech/api/v2", "http://2130706433/api/v2"),
    ],
)
def test_plain_http_is_refused_for_addresses_that_are_not_loopback(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"plain http.*https"):
        NeonClient(API_KEY, base_url=url)


@pytest.mark.parametrize(
    "url",
    [
        *("console.neon.tech/api/v2", "console.neon.tech:443/api/v2", "localhost:8080/api/v2"),
        *("//console.neon.tech/api/v2", "/api/v2", "https:///api/v2", "https:console.neon.tech"),
        *("ftp://console.neon.tech/api/v2", "ws://127.0.0.1/api/v2"),
        "https://h.example.com:0/api/v2",
    ],
)
def test_base_url_without_scheme_or_host_raises_an_error_with_an_example(url: str) -> None:
    with pytest.raises(ConfigurationError, match="expected a scheme, a host") as caught:
        NeonClient(API_KEY, base_url=url)
    assert NEON in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        *("https://h.example.com/api/v2?branch=1", "https://h.example.com/api/v2?"),
        *("https://h.example.com/api/v2#top", "https://h.example.com/api/v2#"),
        *("https://h.example.com/api /v2", "https://h.example.com/\x7fapi"),
        *("https://h\\\\evil.example.com/", "https://h.exämple.com/api/v2"),
        *("https://h.example.com:99999/api/v2", "https://h.example.com:port/api/v2"),
        *("http://[::1/api/v2", "https://[not-an-address]/api/v2"),
        *("https://console..neon.tech/api/v2", "https://.neon.tech/api/v2", "https://./api/v2"),
        f"https://{'a' * 64}.neon.tech/api/v2",
    ],
)
def test_invalid_base_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^base_url "):
        NeonClient(API_KEY, base_url=url)


@pytest.mark.parametrize(
    "url",
    [
        "https://ada:hunter2@h.example.com/api/v2",
        "http://ada:hunter2@127.0.0.1/api/v2",
        "https://hunter2@h.example.com/api/v2",
        "https://ada:hunter2@h.example.com:port/api/v2",
        "https://ada:hunter2@[::1/api/v2",
        "https://ada:hunter2@ex\u2100mple.com/api/v2",
        "https://h.example.com/api/v2?key=hunter2",
        "https://h.example.com/api/v2#key=hunter2",
    ],
)
def test_base_url_with_a_secret_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^base_url ") as caught:
        NeonClient(API_KEY, base_url=url)
    assert "hunter2" not in str(caught.value)


def test_error_names_the_invalid_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_HOST", "console.neon.tech")
    with pytest.raises(ConfigurationError, match=r"^NEON_API_HOST is 'console.neon.tech'"):
        NeonClient(API_KEY)


def test_key_is_in_no_repr() -> None:
    client = NeonClient(API_KEY, base_url="https://h.example.com/api/v2")
    assert repr(client) == "<NeonClient https://h.example.com/api/v2>"
    state = [f"{value!r} {value}" for value in vars(client).values()]
    assert state
    assert API_KEY not in "".join(state)


INVALID_VALUES: dict[tuple[type[msgspec.Struct], str], Sequence[object]] = {
    (Timeout, "connect"): (0, NAN, None),
    (Timeout, "total"): (-1, INF, "3"),
    (RetryPolicy, "attempts"): (0, NAN, 2.5, "3"),
    (RetryPolicy, "initial"): (-0.1, "1"),
    (RetryPolicy, "maximum"): (NAN,),
    (RetryPolicy, "deadline"): (INF,),
    (RateBudget, "per_minute"): (0, -1, 1.5),
    (RateBudget, "per_route_per_second"): (-1, "40"),
    (RateBudget, "route_limits"): (None, {"GET /projects": 0}, {"GET /projects": 1.5}),
    (PollPolicy, "initial"): (0,),
    (PollPolicy, "maximum"): (NAN,),
    (PollPolicy, "growth"): (0.99, INF, "2"),
    (PollPolicy, "jitter"): (1, -0.1, NAN, None),
}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(*setting, value) for setting, values in INVALID_VALUES.items() for value in values],
)
def test_invalid_policy_value_is_refused_by_name(
    kind: type[msgspec.Struct], name: str, value: object
) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{kind.__name__}\.{name}.* is "):
        kind(**{name: value})


def test_invalid_constant_interval_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^PollPolicy\.initial"):
        PollPolicy.constant(0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timeout", 5.0),
        ("timeout", None),
        ("retry", 3),
        ("polling", 1.0),
        ("budget", None),
        ("budget", RetryPolicy()),
        ("max_connections", 0),
        ("max_connections", -1),
        ("max_connections", 2.5),
        ("max_connections", NAN),
        ("max_connections", "100"),
        ("max_connections", None),
    ],
)
def test_invalid_setting_is_refused_by_name(name: str, value: object) -> None:
    settings: dict[str, Any] = {name: value}
    with pytest.raises(ConfigurationError, match=f"^{name} is "):
        NeonClient(API_KEY, **settings)


@pytest.mark.parametrize(
    ("name", "value", "example"),
    [
        ("timeout", 5.0, "timeout=Timeout(connect=10.0)"),
        ("retry", 3, "retry=RetryPolicy(attempts=5)"),
        ("polling", 1.0, "polling=PollPolicy(initial=0.42)"),
        ("budget", 100, "budget=RateBudget(per_minute=700)"),
    ],
)
def test_wrong_type_of_a_policy_is_refused_with_an_example(
    name: str, value: object, example: str
) -> None:
    settings: dict[str, Any] = {name: value}
    with pytest.raises(ConfigurationError, match=rf", as in {re.escape(example)}$"):
        NeonClient(API_KEY, **settings)


@pytest.mark.parametrize("key", [123, b"napi_hunter2", object()])
def test_key_that_is_not_a_string_is_refused_and_not_shown(key: Any) -> None:
    with pytest.raises((ConfigurationError, TypeError), match="key") as caught:
        NeonClient(key)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", [123, b"https://console.neon.tech/api/v2"])
def test_base_url_that_is_not_a_string_is_refused(url: Any) -> None:
    with pytest.raises((ConfigurationError, TypeError), match="base_url"):
        NeonClient(API_KEY, base_url=url)


@pytest.mark.parametrize("policy", [Timeout(), RetryPolicy(), RateBudget(), PollPolicy()])
def test_policies_are_frozen_and_validated_when_replaced(policy: msgspec.Struct) -> None:
    name = msgspec.structs.fields(policy)[0].name
    with pytest.raises(AttributeError):
        setattr(policy, name, 1)
    with pytest.raises(ConfigurationError):
        msgspec.structs.replace(policy, **{name: -1})


def test_default_policies_have_the_documented_values() -> None:
    retry = RetryPolicy()
    assert (retry.attempts, retry.initial, retry.maximum, retry.deadline) == (5, 0.25, 10.0, 90.0)
    polls = PollPolicy()
    assert (polls.initial, polls.growth, polls.maximum, polls.jitter) == (0.42, 1.4, 5.0, 0.1)


@pytest.mark.parametrize(
    ("route", "limit"), [("GET /projects", 40), ("POST /organizations/{id}/api_keys", 10)]
)
def test_default_budget_has_the_limits_of_neon(route: str, limit: int) -> None:
    assert RateBudget().per_minute == 700
    assert RateBudget().limit_of(route) == limit


def test_unlimited_budget_has_no_limit() -> None:
    budget = RateBudget.unlimited()
    assert budget.per_minute is None
    assert budget.limit_of("POST /organizations/{id}/api_keys") is None


def test_constant_polling_has_no_growth_and_no_jitter() -> None:
    assert PollPolicy.constant(5.0) == PollPolicy(initial=5, growth=1, maximum=5, jitter=0)


def test_policy_that_never_retries_has_one_attempt() -> None:
    assert RetryPolicy.never().attempts == 1


def test_empty_argument_is_not_replaced_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_KEY", API_KEY)
    monkeypatch.setenv("NEON_API_HOST", NEON)
    with pytest.raises(ConfigurationError, match="no API key"):
        NeonClient("")
    with pytest.raises(ConfigurationError, match="base_url"):
        NeonClient(base_url="")


def test_key_in_place_of_the_base_url_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_HOST", API_KEY)
    with pytest.raises(ConfigurationError, match="NEON_API_HOST is not a URL") as caught:
        NeonClient(API_KEY)
    assert API_KEY not in str(caught.value)


def test_client_that_is_not_initialized_has_a_repr() -> None:
    assert repr(NeonClient.__new__(NeonClient)).startswith("<NeonClient")


@pytest.mark.parametrize("parts", [1, 3, 4, 700])
def test_shares_of_a_budget_stay_within_it_together(parts: int) -> None:
    share = RateBudget().split(parts)
    assert share.per_minute is not None
    assert 0 <= 700 - parts * share.per_minute < parts
    assert share.per_route_per_second == max(1, 40 // parts)
    assert share.route_limits == {"POST /organizations/{id}/api_keys": max(1, 10 // parts)}


def test_share_of_a_budget_has_at_least_one_request_and_no_new_limit() -> None:
    assert RateBudget().split(10_000).per_minute == 1
    assert RateBudget.unlimited().split(4) == RateBudget.unlimited()
    with pytest.raises(ConfigurationError, match="into 0 parts: expected 1 or more"):
        RateBudget().split(0)
