"""Settings, from arguments and the environment."""

from collections.abc import Callable
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
PLATFORM = "https://console.neon.tech/api/v2"


async def authorization_of(*args: str | Secret) -> str:
    """The header that a client made of ``args`` sends."""
    async with MisbehavingServer(lambda _request: http_response(200, [])) as server:
        async with NeonClient(*args, base_url=server.base_url) as neon:
            await neon.api_keys.list()
        return server.received[0].headers["authorization"]


async def test_the_key_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_KEY", API_KEY)
    assert await authorization_of() == f"Bearer {API_KEY}"


async def test_a_key_given_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_KEY", "napi_of_somebody_else")
    assert await authorization_of(API_KEY) == f"Bearer {API_KEY}"


async def test_a_key_may_be_a_secret() -> None:
    assert await authorization_of(Secret(API_KEY)) == f"Bearer {API_KEY}"


async def test_the_line_break_of_a_key_file_does_no_harm() -> None:
    assert await authorization_of(f" {API_KEY}\r\n") == f"Bearer {API_KEY}"


@pytest.mark.parametrize("key", ["", " ", "\n"])
def test_without_a_key_the_error_names_the_ways_to_give_one(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("NEON_API_KEY", key)
    for given in (None, key):
        with pytest.raises(ConfigurationError, match=r"NEON_API_KEY.*api_key="):
            NeonClient(given)


@pytest.mark.parametrize(
    "key", ["napi hunter2", "napi\nhunter2", "napi\x00hunter2", "näpi_hunter2", "\ud800hunter2"]
)
def test_a_key_that_no_header_can_hold_is_refused_unseen(key: str) -> None:
    with pytest.raises(ConfigurationError, match="API key") as caught:
        NeonClient(key)
    assert "hunter2" not in str(caught.value)


def test_the_base_url_is_the_platforms_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert NeonClient(API_KEY).base_url == PLATFORM
    monkeypatch.setenv("NEON_API_HOST", "")
    assert NeonClient(API_KEY).base_url == PLATFORM
    monkeypatch.setenv("NEON_API_HOST", "https://neon.example.com/api/v2")
    assert NeonClient(API_KEY).base_url == "https://neon.example.com/api/v2"
    given = NeonClient(API_KEY, base_url="https://other.example.com/api/v2")
    assert given.base_url == "https://other.example.com/api/v2"


@pytest.mark.parametrize(
    ("given", "kept"),
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
def test_a_base_url_that_is_taken(given: str, kept: str) -> None:
    assert NeonClient(API_KEY, base_url=given).base_url == kept


@pytest.mark.parametrize(
    "url",
    [
        "http://console.neon.tech/api/v2",
        "http://0.0.0.0/api/v2",
        "http://192.168.0.1/api/v2",
        "http://[2001:db8::1]/api/v2",
        "http://localhost.example.com/api/v2",
        "http://127.0.0.1.example.com/api/v2",
        "http://2130706433/api/v2",
    ],
)
def test_plain_http_is_refused_but_to_loopback(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"plain http.*https"):
        NeonClient(API_KEY, base_url=url)


@pytest.mark.parametrize(
    "url",
    [
        "console.neon.tech/api/v2",
        "console.neon.tech:443/api/v2",
        "localhost:8080/api/v2",
        "//console.neon.tech/api/v2",
        "/api/v2",
        "https:///api/v2",
        "https:console.neon.tech",
        "ftp://console.neon.tech/api/v2",
        "ws://127.0.0.1/api/v2",
        "https://h.example.com:0/api/v2",
    ],
)
def test_without_scheme_or_host_the_error_shows_how_it_looks(url: str) -> None:
    with pytest.raises(ConfigurationError, match="needs a scheme, a host") as caught:
        NeonClient(API_KEY, base_url=url)
    assert PLATFORM in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://h.example.com/api/v2?branch=1",
        "https://h.example.com/api/v2?",
        "https://h.example.com/api/v2#top",
        "https://h.example.com/api/v2#",
        "https://h\\\\evil.example.com/",
        "https://h.example.com/api /v2",
        "https://h.example.com/\x7fapi",
        "https://h.exämple.com/api/v2",
        "https://h.example.com:99999/api/v2",
        "https://h.example.com:port/api/v2",
        "http://[::1/api/v2",
        "https://[not-an-address]/api/v2",
    ],
)
def test_a_base_url_that_cannot_work_is_refused(url: str) -> None:
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
def test_a_base_url_that_holds_a_secret_is_refused_unseen(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^base_url ") as caught:
        NeonClient(API_KEY, base_url=url)
    assert "hunter2" not in str(caught.value)


def test_the_error_names_the_variable_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_HOST", "console.neon.tech")
    with pytest.raises(ConfigurationError, match=r"^NEON_API_HOST is 'console.neon.tech'"):
        NeonClient(API_KEY)


def test_the_key_is_in_no_repr() -> None:
    client = NeonClient(API_KEY, base_url="https://h.example.com/api/v2")
    assert repr(client) == "<NeonClient https://h.example.com/api/v2>"
    state = [f"{value!r} {value}" for value in vars(client).values()]
    assert state
    assert API_KEY not in "".join(state)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_client_needs_a_connection(limit: int) -> None:
    with pytest.raises(ConfigurationError, match="max_connections"):
        NeonClient(API_KEY, max_connections=limit)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("Timeout.connect", lambda: Timeout(connect=0)),
        ("Timeout.connect", lambda: Timeout(connect=NAN)),
        ("Timeout.total", lambda: Timeout(total=-1)),
        ("Timeout.total", lambda: Timeout(total=INF)),
        ("RetryPolicy.attempts", lambda: RetryPolicy(attempts=0)),
        ("RetryPolicy.initial", lambda: RetryPolicy(initial=-0.1)),
        ("RetryPolicy.maximum", lambda: RetryPolicy(maximum=NAN)),
        ("RetryPolicy.deadline", lambda: RetryPolicy(deadline=INF)),
        ("RateBudget.per_minute", lambda: RateBudget(per_minute=0)),
        ("RateBudget.per_route_per_second", lambda: RateBudget(per_route_per_second=-1)),
        ("RateBudget.route_limits", lambda: RateBudget(route_limits={"GET /projects": 0})),
        ("PollPolicy.initial", lambda: PollPolicy(initial=0)),
        ("PollPolicy.maximum", lambda: PollPolicy(maximum=NAN)),
        ("PollPolicy.growth", lambda: PollPolicy(growth=0.99)),
        ("PollPolicy.growth", lambda: PollPolicy(growth=INF)),
        ("PollPolicy.jitter", lambda: PollPolicy(jitter=1)),
        ("PollPolicy.jitter", lambda: PollPolicy(jitter=-0.1)),
        ("PollPolicy.jitter", lambda: PollPolicy(jitter=NAN)),
        ("PollPolicy.initial", lambda: PollPolicy.constant(0)),
    ],
)
def test_an_impossible_policy_is_refused_by_name(name: str, make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}"):
        make()


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (Timeout, "connect", None),
        (Timeout, "total", "3"),
        (RetryPolicy, "attempts", NAN),
        (RetryPolicy, "attempts", 2.5),
        (RetryPolicy, "attempts", "3"),
        (RetryPolicy, "initial", "1"),
        (RateBudget, "per_minute", 1.5),
        (RateBudget, "per_route_per_second", "40"),
        (RateBudget, "route_limits", None),
        (RateBudget, "route_limits", {"GET /projects": 1.5}),
        (PollPolicy, "growth", "2"),
        (PollPolicy, "jitter", None),
    ],
)
def test_a_policy_of_the_wrong_type_is_refused_by_name(
    kind: Callable[..., object], name: str, value: object
) -> None:
    with pytest.raises(ConfigurationError, match=rf"\.{name} is "):
        kind(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timeout", 5.0),
        ("timeout", None),
        ("retry", 3),
        ("polling", 1.0),
        ("budget", None),
        ("budget", RetryPolicy()),
        ("max_connections", 2.5),
        ("max_connections", NAN),
        ("max_connections", "100"),
        ("max_connections", None),
    ],
)
def test_a_setting_of_the_wrong_type_is_refused_by_name(name: str, value: object) -> None:
    settings: dict[str, Any] = {name: value}
    with pytest.raises(ConfigurationError, match=f"^{name} is "):
        NeonClient(API_KEY, **settings)


@pytest.mark.parametrize("key", [123, b"napi_hunter2", object()])
def test_a_key_that_is_no_string_is_refused_unseen(key: Any) -> None:
    with pytest.raises((ConfigurationError, TypeError), match="key") as caught:
        NeonClient(key)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", [123, b"https://console.neon.tech/api/v2"])
def test_a_base_url_that_is_no_string_is_refused(url: Any) -> None:
    with pytest.raises((ConfigurationError, TypeError), match="base_url"):
        NeonClient(API_KEY, base_url=url)


@pytest.mark.parametrize("host", ["console..neon.tech", ".neon.tech", f"{'a' * 64}.neon.tech", "."])
def test_a_host_that_no_name_lookup_can_take_is_refused(host: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^base_url "):
        NeonClient(API_KEY, base_url=f"https://{host}/api/v2")


@pytest.mark.parametrize("policy", [Timeout(), RetryPolicy(), RateBudget(), PollPolicy()])
def test_policies_are_frozen_and_checked_when_replaced(policy: msgspec.Struct) -> None:
    name = msgspec.structs.fields(policy)[0].name
    with pytest.raises(AttributeError):
        setattr(policy, name, 1)
    with pytest.raises(ConfigurationError):
        msgspec.structs.replace(policy, **{name: -1})


def test_the_defaults_are_those_of_the_contract() -> None:
    retry = RetryPolicy()
    assert (retry.attempts, retry.initial, retry.maximum, retry.deadline) == (5, 0.25, 10.0, 60.0)
    polling = PollPolicy()
    assert (polling.initial, polling.growth, polling.maximum, polling.jitter) == (
        0.25,
        1.5,
        5.0,
        0.1,
    )


@pytest.mark.parametrize(
    ("route", "limit"),
    [("GET /projects", 40), ("POST /organizations/{id}/api_keys", 10)],
)
def test_the_default_budget_is_the_platforms(route: str, limit: int) -> None:
    assert RateBudget().per_minute == 700
    assert RateBudget().limit_of(route) == limit


def test_an_unlimited_budget_has_no_limit() -> None:
    budget = RateBudget.unlimited()
    assert budget.per_minute is None
    assert budget.limit_of("POST /organizations/{id}/api_keys") is None


def test_constant_polling_neither_grows_nor_varies() -> None:
    assert PollPolicy.constant(5.0) == PollPolicy(initial=5, growth=1, maximum=5, jitter=0)


def test_never_retrying_is_a_single_attempt() -> None:
    assert RetryPolicy.never().attempts == 1


def test_an_empty_argument_is_not_made_up_for_by_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NEON_API_KEY", API_KEY)
    monkeypatch.setenv("NEON_API_HOST", PLATFORM)
    with pytest.raises(ConfigurationError, match="no API key"):
        NeonClient("")
    with pytest.raises(ConfigurationError, match="base_url"):
        NeonClient(base_url="")


def test_a_key_in_the_place_of_the_base_url_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_HOST", API_KEY)
    with pytest.raises(ConfigurationError, match="NEON_API_HOST is no URL") as caught:
        NeonClient(API_KEY)
    assert API_KEY not in str(caught.value)


def test_a_client_that_could_not_be_made_has_a_repr_for_tracebacks_to_show() -> None:
    assert repr(NeonClient.__new__(NeonClient)).startswith("<NeonClient")


@pytest.mark.parametrize("parts", [1, 3, 4, 700])
def test_the_parts_of_a_budget_keep_to_it_together(parts: int) -> None:
    part = RateBudget().split(parts)
    assert part.per_minute is not None
    assert 0 <= 700 - parts * part.per_minute < parts
    assert part.per_route_per_second == max(1, 40 // parts)
    assert part.route_limits == {"POST /organizations/{id}/api_keys": max(1, 10 // parts)}


def test_no_part_of_a_budget_is_without_any_or_limited_where_the_whole_is_not() -> None:
    assert RateBudget().split(10_000).per_minute == 1
    assert RateBudget.unlimited().split(4) == RateBudget.unlimited()
    with pytest.raises(ConfigurationError, match="into 0 parts: at least 1"):
        RateBudget().split(0)
