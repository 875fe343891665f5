"""Requests and responses of a session, on real sockets."""

import asyncio
import sys
import uuid
from typing import Any

import aiohttp
import msgspec
import pytest

from neonctl_async import (
    APIError,
    AuthenticationError,
    ConnectionFailedError,
    ConnectionLostError,
    InvalidResponseError,
    NeonClient,
    RequestTimeoutError,
    RetryPolicy,
    Timeout,
)
from tests.support.clock import skip_ahead
from tests.support.records import API_KEY, PROJECT, operation_json, responding
from tests.support.server import (
    OK,
    MisbehavingServer,
    Respond,
    drop,
    hang,
    http_response,
    in_sequence,
    raw,
)

OPERATION = http_response(content={"operation": operation_json()})
PATH = f"/projects/{PROJECT}/operations/op-1"


async def test_every_request_has_the_standard_headers_and_a_unique_id() -> None:
    async with responding(OPERATION) as (server, neon):
        for _ in range(2):
            await neon.operations.get(PROJECT, "op-1")
    first, second = server.received
    assert first.headers["authorization"] == f"Bearer {API_KEY}"
    assert first.headers["accept"] == "application/json"
    assert first.headers["user-agent"].startswith("neonctl-async/")
    assert "content-type" not in first.headers
    assert uuid.UUID(first.headers["x-request-id"])
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert first.target == f"/api/v2{PATH}"


FORKING_PROGRAM = """
import asyncio, os
from neonctl_async import Hooks, NeonClient, RetryPolicy

def print_id(request):
    print(request.id, flush=True)

hooks = [Hooks(on_request=print_id)]
neon = NeonClient("napi_key", base_url="http://127.0.0.1:1", retry=RetryPolicy.never(), hooks=hooks)

async def send():
    async with neon:
        await asyncio.wait([asyncio.create_task(neon.request("GET", "/regions"))])

for _ in range(2):
    if not os.fork():
        asyncio.run(send())
        break
    os.wait()
"""


@pytest.mark.process
async def test_forked_processes_send_different_request_ids() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        FORKING_PROGRAM,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    first, second = output.split()
    assert first != second


async def test_body_is_sent_as_json() -> None:
    created = {"id": 1, "key": "k"}
    async with responding(http_response(content=created)) as (server, neon):
        await neon.api_keys.create(key_name="ci")
    [request] = server.received
    assert (request.method, request.json()) == ("POST", {"key_name": "ci"})
    assert request.headers["content-type"] == "application/json"


async def test_connections_are_kept_alive() -> None:
    async with responding(OPERATION) as (server, neon):
        for _ in range(10):
            await neon.operations.get(PROJECT, "op-1")
    assert (len(server.received), server.connections) == (10, 1)


async def test_connections_are_limited_by_max_connections() -> None:
    async with responding(OPERATION, max_connections=3) as (server, neon):
        await asyncio.gather(*(neon.operations.get(PROJECT, "op-1") for _ in range(50)))
    assert (len(server.received), server.connections) == (50, 3)


async def test_requests_sent_includes_retries() -> None:
    async with responding(http_response(503), OPERATION, retry=RetryPolicy(initial=0)) as (_, neon):
        await neon.operations.get(PROJECT, "op-1")
        assert neon.requests_sent == 2


async def test_401_costs_exactly_one_request() -> None:
    async with responding(http_response(401, {"message": "no such key"})) as (server, neon):
        with pytest.raises(AuthenticationError) as caught:
            await neon.operations.get(PROJECT, "op-1")
    [request] = server.received
    assert caught.value.message == "no such key"
    assert caught.value.request_id == request.headers["x-request-id"]


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH", "PUT"])
@pytest.mark.parametrize(
    "response", [drop(), drop(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{")]
)
async def test_mutation_with_a_lost_connection_is_sent_once_and_maybe_delivered(
    method: str, response: Respond
) -> None:
    async with responding(OK, response) as (server, neon):
        await neon.request("GET", "/projects")  # the next request uses the kept-alive connection
        with pytest.raises(ConnectionLostError, match="Neon may have executed") as caught:
            await neon.request(method, "/projects")
    assert [request.method for request in server.received] == ["GET", method]
    assert caught.value.maybe_delivered
    assert caught.value.request_id == server.received[1].headers["x-request-id"]


async def test_get_with_a_lost_connection_is_sent_again() -> None:
    async with responding(drop(), OPERATION, retry=RetryPolicy(initial=0)) as (server, neon):
        assert (await neon.operations.get(PROJECT, "op-1")).id == "op-1"
    assert len(server.received) == 2


async def test_refused_connection_means_nothing_was_sent() -> None:
    async with MisbehavingServer(in_sequence(hang)) as server:
        base_url = server.base_url
    async with NeonClient(API_KEY, base_url=base_url, retry=RetryPolicy.never()) as neon:
        with pytest.raises(ConnectionFailedError, match="nothing was sent") as caught:
            await neon.api_keys.create(key_name="ci")
    assert not caught.value.maybe_delivered
    assert isinstance(caught.value.__cause__, aiohttp.ClientError)


async def test_unknown_host_name_means_nothing_was_sent() -> None:
    neon = NeonClient(API_KEY, base_url="https://no-such-host.invalid", retry=RetryPolicy.never())
    async with neon:
        with pytest.raises(ConnectionFailedError):
            await neon.api_keys.create(key_name="ci")


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(Timeout(connect=3), "3"), (Timeout(read=2), "2"), (Timeout(total=1), "1")],
)
async def test_connection_that_is_never_accepted_means_nothing_was_sent(
    full_port: int, timeout: Timeout, seconds: str
) -> None:
    neon = NeonClient(
        API_KEY,
        base_url=f"http://127.0.0.1:{full_port}",
        retry=RetryPolicy.never(),
        timeout=timeout,
    )
    async with neon:
        with pytest.raises(
            RequestTimeoutError, match=f"no connection within {seconds} s"
        ) as caught:
            await neon.api_keys.create(key_name="ci")
    assert not caught.value.maybe_delivered


@pytest.mark.virtual_time
async def test_all_timeouts_of_a_connection_at_once_mean_nothing_was_sent(
    full_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    neon = NeonClient(
        API_KEY,
        base_url=f"http://127.0.0.1:{full_port}",
        retry=RetryPolicy.never(),
        timeout=Timeout(connect=0.18, total=0.2),
    )
    async with neon:
        loop.call_later(0.17, skip_ahead, monkeypatch, 0.04)
        with pytest.raises(RequestTimeoutError, match=r"no connection within 0\.2 s") as caught:
            await neon.api_keys.create(key_name="ci")
    assert not caught.value.maybe_delivered


@pytest.mark.virtual_time
async def test_mutation_without_a_response_times_out_and_is_maybe_delivered() -> None:
    async with responding(hang, timeout=Timeout(total=4)) as (server, neon):
        with pytest.raises(RequestTimeoutError, match="4 s") as caught:
            await neon.api_keys.create(key_name="ci")
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.maybe_delivered
    assert len(server.received) == 1


@pytest.mark.virtual_time
async def test_queueing_for_a_connection_does_not_count_towards_the_timeout() -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3)
        await OPERATION(writer)

    async with responding(slow, timeout=Timeout(total=4), max_connections=1) as (server, neon):
        await asyncio.gather(*(neon.operations.get(PROJECT, "op-1") for _ in range(5)))
    assert len(server.received) == 5


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_errors_and_never_followed(status: int) -> None:
    async with MisbehavingServer(in_sequence(OPERATION)) as target:
        redirect = http_response(status, headers={"Location": f"{target.base_url}{PATH}"})
        async with responding(redirect) as (_, neon):
            with pytest.raises(APIError) as caught:
                await neon.operations.get(PROJECT, "op-1")
    assert caught.value.status == status
    assert target.received == []


@pytest.mark.parametrize(
    "body",
    [b"<html>welcome</html>", b'{"operation": {"id": "op', b'{"operations": []}', b"[]", b""],
)
async def test_invalid_200_raises_an_error_with_request_and_excerpt(body: bytes) -> None:
    response = http_response(body=body, headers={"x-neon-ret-request-id": "req-7"})
    async with responding(response) as (server, neon):
        with pytest.raises(InvalidResponseError) as caught:
            await neon.operations.get(PROJECT, "op-1")
    error = caught.value
    assert (error.method, error.path, error.status, error.request_id) == ("GET", PATH, 200, "req-7")
    assert error.excerpt == body.decode()
    assert len(server.received) == 1


@pytest.mark.parametrize("body", [b"<html>Bad Gateway</html>", b"", b"[1]", b'{"message": 7}'])
async def test_error_with_an_unexpected_body_is_an_api_error(body: bytes) -> None:
    async with responding(http_response(400, body=body)) as (_, neon):
        with pytest.raises(APIError) as caught:
            await neon.operations.get(PROJECT, "op-1")
    assert (caught.value.status, caught.value.code) == (400, "")
    assert caught.value.message


async def test_response_that_is_not_http_is_a_lost_connection() -> None:
    response = raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    async with responding(response, retry=RetryPolicy.never()) as (_, neon):
        with pytest.raises(ConnectionLostError):
            await neon.operations.get(PROJECT, "op-1")


@pytest.mark.virtual_time
async def test_cancelled_call_is_not_retried() -> None:
    async with responding(hang) as (_, neon):
        call = asyncio.create_task(neon.operations.get(PROJECT, "op-1"))
        await asyncio.sleep(1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert neon.requests_sent == 1


async def test_cookies_are_not_stored() -> None:
    response = http_response(
        content={"operation": operation_json()}, headers={"Set-Cookie": "session=1; Path=/"}
    )
    async with MisbehavingServer(in_sequence(response)) as server:
        # Cookie jars store no cookie for an IP address.
        url = server.base_url.replace("127.0.0.1", "localhost")
        async with NeonClient(API_KEY, base_url=url) as neon:
            for _ in range(2):
                await neon.operations.get(PROJECT, "op-1")
    assert ["cookie" in request.headers for request in server.received] == [False, False]


async def test_decoder_of_a_type_is_created_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class UniqueType(msgspec.Struct):
        pass

    created: list[object] = []
    original = msgspec.json.Decoder

    def recording(kind: Any, **settings: Any) -> Any:
        created.append(kind)
        return original(kind, **settings)

    monkeypatch.setattr("msgspec.json.Decoder", recording)
    async with responding(OK) as (_, neon):
        for _ in range(3):
            await neon.request("GET", "/projects", type=UniqueType)
    assert created == [UniqueType]
