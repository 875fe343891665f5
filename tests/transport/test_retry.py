"""Retries: which failures, when, and how often; on a fake clock."""

import asyncio
import traceback

import pytest

from neonctl_async import (
    APIError,
    ConnectionFailedError,
    ConnectionLostError,
    Hooks,
    LockedError,
    NeonClient,
    NeonError,
    RateBudget,
    RateLimitedError,
    RequestTimeoutError,
    RetryPlanned,
    RetryPolicy,
    ServerError,
)
from neonctl_async.testing import real_time_hooks
from neonctl_async.transport import retry
from tests.support.clock import now
from tests.support.records import API_KEY, responding
from tests.support.server import (
    OK,
    MisbehavingServer,
    Respond,
    drop,
    hang,
    http_response,
    in_sequence,
)

pytestmark = pytest.mark.virtual_time

ALWAYS = [423, 429, 503]
"""The statuses that are retried for every method up to the deadline: nothing was executed."""
GET_ONLY = [408, 500, 502, 504]
NEVER = [400, 401, 403, 404, 405, 409, 410, 412, 418, 422, 501, 505, 520]
MUTATIONS = ["POST", "PUT", "PATCH", "DELETE"]


async def count_requests(method: str, response: Respond, policy: RetryPolicy | None = None) -> int:
    """Return the number of requests of a call that always gets ``response``."""
    async with responding(response, retry=policy or RetryPolicy()) as (server, neon):
        with pytest.raises(NeonError):
            await neon.request(method, "/projects")
    return len(server.received)


@pytest.mark.parametrize("status", ALWAYS)
@pytest.mark.parametrize("method", ["GET", *MUTATIONS])
async def test_request_that_had_no_effect_is_retried_for_every_method(
    method: str, status: int
) -> None:
    async with responding(http_response(status)) as (server, neon):
        with pytest.raises(APIError) as caught:
            await neon.request(method, "/projects")
        assert caught.value.status == status
        assert RetryPolicy().deadline - 2 * RetryPolicy().maximum <= now() <= RetryPolicy().deadline
    assert len(server.received) > 5


@pytest.mark.parametrize("seconds", [3.0, 10.0])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_outage_in_which_nothing_is_executed_fails_no_call(
    method: str, seconds: float
) -> None:
    executed: list[str] = []

    async def respond(writer: asyncio.StreamWriter) -> None:
        is_up = now() >= seconds
        if is_up:
            executed.append(method)
        await (OK if is_up else http_response(503))(writer)

    async with responding(respond, hooks=[real_time_hooks()]) as (_, neon):
        calls = [neon.request(method, "/projects") for _ in range(25)]
        assert await asyncio.gather(*calls) == [{}] * 25
    assert len(executed) == 25


async def test_default_deadline_outlasts_a_minute_that_others_have_used_up() -> None:
    async def respond(writer: asyncio.StreamWriter) -> None:
        headers = {"Retry-After": str(max(60 - int(now()), 1))}
        await (OK if now() >= 60 else http_response(429, headers=headers))(writer)

    async with responding(respond, hooks=[real_time_hooks()]) as (_, neon):
        calls = [neon.request("POST", "/projects") for _ in range(50)]
        assert await asyncio.gather(*calls) == [{}] * 50


async def test_unreachable_server_that_has_responded_before_is_retried_until_the_deadline() -> None:
    policy = RetryPolicy(deadline=20.0)
    async with responding(OK, retry=policy) as (server, neon):
        await neon.request("GET", "/projects")
        await server.__aexit__(None, None, None)
        with pytest.raises(ConnectionFailedError):
            await neon.request("POST", "/projects")
        assert neon.requests_sent > 6


async def test_response_that_is_cut_off_is_retried_only_for_get() -> None:
    async def cut_off(writer: asyncio.StreamWriter) -> None:
        writer.write(
            b'HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"projects": [{"id"'
        )
        await writer.drain()
        writer.close()

    async with responding(cut_off, OK) as (_, neon):
        assert await neon.request("GET", "/projects") == {}
    async with responding(cut_off, OK) as (server, neon):
        with pytest.raises(ConnectionLostError, match="ended early") as caught:
            await neon.request("POST", "/projects")
    assert caught.value.maybe_delivered
    assert len(server.received) == 1


@pytest.mark.parametrize("status", GET_ONLY)
async def test_request_that_may_have_been_executed_is_retried_only_for_get(status: int) -> None:
    assert await count_requests("GET", http_response(status)) == 5
    for method in MUTATIONS:
        assert await count_requests(method, http_response(status)) == 1


@pytest.mark.parametrize("status", NEVER)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_permanent_failure_is_not_retried(method: str, status: int) -> None:
    assert await count_requests(method, http_response(status)) == 1


@pytest.mark.parametrize("response", [drop(), hang])
async def test_missing_response_is_retried_only_for_get(response: Respond) -> None:
    assert await count_requests("GET", response, RetryPolicy(deadline=1000)) == 5
    for method in MUTATIONS:
        assert await count_requests(method, response) == 1


async def test_invalid_body_is_not_retried() -> None:
    assert await count_requests("GET", http_response(body=b"<html>")) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_refused_connection_is_retried_for_every_method(method: str) -> None:
    async with MisbehavingServer(in_sequence(hang)) as server:
        base_url = server.base_url
    async with NeonClient(API_KEY, base_url=base_url) as neon:
        with pytest.raises(ConnectionFailedError):
            await neon.request(method, "/projects")
        assert neon.requests_sent == 5


async def test_success_after_retries_is_returned(caplog: pytest.LogCaptureFixture) -> None:
    failures = map(http_response, (503, 429, 423))
    async with responding(*failures, http_response(content={"projects": []})) as (_, neon):
        assert await neon.request("POST", "/projects") == {"projects": []}
    first, paused, last = (record.getMessage() for record in caplog.records)
    assert first.startswith("retrying in ")
    assert paused.endswith("(429): this client sends nothing for 1 s")
    assert last.startswith("retrying in ")


@pytest.mark.parametrize("gap", [0, 0.01])
async def test_calls_that_get_a_429_almost_at_the_same_time_log_one_warning(
    caplog: pytest.LogCaptureFixture, gap: float
) -> None:
    limited = http_response(429, headers={"Retry-After": "7"})
    responses = (slow(limited, number * gap) for number in range(30))
    async with responding(*responses, OK) as (_, neon):
        await asyncio.gather(*(neon.request("POST", "/projects") for _ in range(30)))
    [record] = caplog.records
    assert record.getMessage().endswith("(429): this client sends nothing for 7 s")


@pytest.mark.parametrize("responses", [[503], [503, 400], [503, 500]])
async def test_traceback_of_the_last_failure_shows_no_frame_of_tenacity(
    responses: list[int],
) -> None:
    async with responding(*map(http_response, responses)) as (_, neon):
        with pytest.raises(APIError) as caught:
            await neon.request("POST", "/projects")
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files[0] == __file__
    assert not [file for file in files if "tenacity" in file]
    assert files.count(retry.__file__) <= 3
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


async def test_retried_call_keeps_the_cause_of_its_last_failure() -> None:
    async with responding(OK) as (server, _):
        address = server.base_url
    async with NeonClient(API_KEY, base_url=address) as neon:
        with pytest.raises(ConnectionFailedError) as caught:
            await neon.request("GET", "/projects")
    assert type(caught.value.__cause__).__name__ == "ClientConnectorError"


async def test_tracebacks_of_calls_at_the_same_time_do_not_grow_with_each_other() -> None:
    async with responding(http_response(503)) as (_, neon):
        calls = (neon.request("POST", "/projects") for _ in range(5))
        failures = await asyncio.gather(*calls, return_exceptions=True)
    shown = {
        tuple((frame.filename, frame.name) for frame in traceback.extract_tb(one.__traceback__))
        for one in failures
        if isinstance(one, ServerError)
    }
    assert len(failures) == 5
    assert len(shown) == 1


@pytest.mark.parametrize(
    ("policy", "attempts"), [(RetryPolicy.never(), 1), (RetryPolicy(attempts=2), 2)]
)
async def test_attempts_are_limited_by_the_policy(policy: RetryPolicy, attempts: int) -> None:
    assert await count_requests("GET", http_response(500), policy) == attempts
    if policy == RetryPolicy.never():
        assert await count_requests("GET", http_response(503), policy) == 1


async def test_failure_without_an_effect_does_not_count_as_one_of_the_attempts() -> None:
    responses = [http_response(status) for status in (429, 500, 503, 429, 500, 423, 500)]
    policy = RetryPolicy(attempts=3, deadline=1000)
    async with responding(*responses, OK, retry=policy) as (server, neon):
        with pytest.raises(ServerError):
            await neon.request("GET", "/projects")
    assert len(server.received) == 7


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "2"}])
async def test_429_until_the_deadline_is_raised(headers: dict[str, str]) -> None:
    async with responding(http_response(429, headers=headers)) as (server, neon):
        with pytest.raises(RateLimitedError):
            await neon.request("POST", "/projects")
        assert now() <= RetryPolicy().deadline
    assert len(server.received) > 5


async def test_429_is_raised_if_the_client_holds_back_until_the_deadline() -> None:
    settings = {"retry": RetryPolicy(initial=0, deadline=20.0), "budget": RateBudget(per_minute=1)}
    async with responding(http_response(429), **settings) as (server, neon):
        with pytest.raises(RateLimitedError):
            await neon.request("POST", "/projects")
        assert now() == pytest.approx(20, abs=0.2)
    assert len(server.received) == 1


@pytest.mark.fact("client-2")
async def test_429_without_retry_after_holds_back_the_whole_client() -> None:
    async with responding(http_response(429), OK, retry=RetryPolicy.never()) as (server, neon):
        with pytest.raises(RateLimitedError):
            await neon.request("POST", "/projects")
        limited_at = now()
        await neon.request("GET", "/regions")
        assert now() > limited_at + 0.1
    assert len(server.received) == 2


async def test_newest_failure_is_raised() -> None:
    gone = http_response(404, {"message": "gone meanwhile"})
    async with responding(http_response(503), http_response(503), gone) as (server, neon):
        with pytest.raises(APIError, match="gone meanwhile"):
            await neon.request("GET", "/projects")
    assert len(server.received) == 3


async def test_lost_connection_is_retried_after_the_backoff() -> None:
    async with responding(drop(), OK) as (_, neon):
        await neon.request("GET", "/projects")
        assert now() <= 0.3


async def test_backoff_is_exponential_with_full_jitter_and_a_maximum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds: list[float] = []

    def highest(low: float, high: float) -> float:
        assert low == 0
        bounds.append(high)
        return high

    monkeypatch.setattr("random.uniform", highest)
    await count_requests(
        "GET", http_response(500), RetryPolicy(attempts=6, initial=0.25, maximum=2.0)
    )
    assert bounds[:5] == [0.25, 0.5, 1.0, 2.0, 2.0]
    assert now() == pytest.approx(5.75, abs=0.1)


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "17"},
        {"Retry-After": "Fri, 20 Nov 2026 10:00:17 GMT", "Date": "Fri, 20 Nov 2026 10:00:00 GMT"},
    ],
)
@pytest.mark.parametrize("status", [423, 429, 503])
async def test_retry_after_is_the_minimum_delay_in_both_forms(
    headers: dict[str, str], status: int
) -> None:
    async with responding(http_response(status, headers=headers), OK) as (_, neon):
        await neon.request("POST", "/projects")
        assert now() == pytest.approx(17, abs=0.3)


@pytest.mark.parametrize("value", ["0", "soon", "-3", "", "Fri, 32 Foo 2026"])
async def test_invalid_retry_after_leaves_the_backoff(value: str) -> None:
    async with responding(http_response(503, headers={"Retry-After": value}), OK) as (_, neon):
        await neon.request("GET", "/projects")
        assert now() <= 0.25


async def test_retry_after_beyond_the_deadline_raises_at_once() -> None:
    response = http_response(429, headers={"Retry-After": "7200"})
    async with responding(response) as (server, neon):
        with pytest.raises(APIError) as caught:
            await neon.request("GET", "/projects")
        assert now() < 0.1
    assert caught.value.retry_after == 7200
    assert len(server.received) == 1


async def test_no_attempt_starts_after_the_deadline() -> None:
    policy = RetryPolicy(attempts=1000, initial=4.0, maximum=4.0, deadline=20.0)
    async with responding(http_response(503), retry=policy) as (server, neon):
        with pytest.raises(APIError):
            await neon.request("GET", "/projects")
        assert now() <= 20
    assert 5 < len(server.received) < 100


def slow(response: Respond, seconds: float) -> Respond:
    async def respond(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await response(writer)

    return respond


async def test_deadline_limits_an_attempt_in_flight() -> None:
    policy = RetryPolicy(attempts=1000, initial=3.0, maximum=3.0, deadline=20.0)
    async with responding(slow(http_response(503), 12), retry=policy) as (server, neon):
        with pytest.raises(RequestTimeoutError):
            await neon.request("POST", "/projects")
        assert now() == pytest.approx(20, abs=0.1)
    assert len(server.received) == 2


async def test_no_attempt_starts_without_time_for_a_response() -> None:
    policy = RetryPolicy(initial=0, deadline=20.0)
    async with responding(slow(http_response(503), 19.95), retry=policy) as (server, neon):
        with pytest.raises(ServerError) as caught:
            await neon.request("POST", "/projects")
    assert not caught.value.maybe_delivered
    assert len(server.received) == 1


async def test_newest_failure_is_raised_if_the_budget_has_no_slot_before_the_deadline() -> None:
    settings = {"retry": RetryPolicy(initial=0, deadline=20.0), "budget": RateBudget(per_minute=3)}
    responses = http_response(503), http_response(503), http_response(423)
    async with responding(*responses, **settings) as (server, neon):
        with pytest.raises(LockedError):
            await neon.request("POST", "/projects")
        assert now() == pytest.approx(20, abs=0.1)
    assert len(server.received) == 3


async def test_deadline_starts_when_the_budget_has_a_free_slot() -> None:
    settings = {"retry": RetryPolicy(initial=0, deadline=20.0), "budget": RateBudget(per_minute=1)}
    async with responding(OK, http_response(503), OK, **settings) as (_, neon):
        await neon.request("POST", "/projects")
        with pytest.raises(ServerError):
            await neon.request("POST", "/projects")
        assert now() == pytest.approx(80, abs=0.1)


async def test_call_can_be_cancelled_during_the_backoff() -> None:
    response = http_response(503, headers={"Retry-After": "30"})
    async with responding(response) as (server, neon):
        call = asyncio.create_task(neon.request("GET", "/projects"))
        await asyncio.sleep(10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert now() == pytest.approx(10, abs=0.01)
    assert len(server.received) == 1


async def test_first_attempt_does_not_use_tenacity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neonctl_async.transport.session.Retries", None)
    async with responding(OK) as (_, neon):
        assert await neon.request("GET", "/projects") == {}


async def test_hook_sees_each_failure_with_the_number_of_attempts_so_far() -> None:
    planned: list[RetryPlanned] = []
    responses = map(http_response, (503, 500, 423))
    async with responding(*responses, OK, hooks=[Hooks(on_retry=planned.append)]) as (_, neon):
        await neon.request("GET", "/projects")
    assert [retry.attempt for retry in planned] == [1, 2, 3]
    assert [type(retry.error) for retry in planned] == [ServerError, ServerError, LockedError]


@pytest.mark.parametrize(
    ("policy", "status", "is_counted"),
    [
        (RetryPolicy(), 503, False),
        (RetryPolicy(), 500, True),
        (RetryPolicy(initial=0), 503, True),
        (RetryPolicy(maximum=0), 503, True),
    ],
)
def test_failure_counts_if_it_may_have_had_an_effect_or_nothing_slows_retries_down(
    policy: RetryPolicy, status: int, *, is_counted: bool
) -> None:
    failure = APIError.for_status(status)(status=status, message="", method="GET", path="/")
    assert retry.counts_as_attempt(failure, policy, is_address_known=True) is is_counted
