"""What goes over the wire, and what becomes of what comes back; on real sockets."""

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
from tests.support.records import API_KEY, PROJECT, client_of, operation_json
from tests.support.server import MisbehavingServer, Respond, drop, hang, http_response, in_turn, raw

OPERATION = {"operation": operation_json()}
PATH = f"/projects/{PROJECT}/operations/op-1"


async def test_every_request_carries_key_accept_agent_and_an_id_of_its_own() -> None:
    async with (
        MisbehavingServer(in_turn(http_response(content=OPERATION))) as server,
        client_of(server) as neon,
    ):
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


FORKS = """
import asyncio, os
from neonctl_async import Hooks, NeonClient, RetryPolicy

def tell(sent):
    print(sent.id, flush=True)

hooks = [Hooks(on_request=tell)]
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
async def test_processes_forked_with_a_client_have_ids_of_their_own() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FORKS, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()
    first, second = told.split()
    assert first != second


async def test_a_body_is_sent_as_json() -> None:
    created = {"id": 1, "key": "k"}
    async with (
        MisbehavingServer(in_turn(http_response(content=created))) as server,
        client_of(server) as neon,
    ):
        await neon.api_keys.create(key_name="ci")
    [request] = server.received
    assert (request.method, request.json()) == ("POST", {"key_name": "ci"})
    assert request.headers["content-type"] == "application/json"


async def test_connections_are_kept_alive() -> None:
    async with (
        MisbehavingServer(in_turn(http_response(content=OPERATION))) as server,
        client_of(server) as neon,
    ):
        for _ in range(10):
            await neon.operations.get(PROJECT, "op-1")
    assert (len(server.received), server.connections) == (10, 1)


async def test_no_more_connections_are_open_than_allowed() -> None:
    async with (
        MisbehavingServer(in_turn(http_response(content=OPERATION))) as server,
        client_of(server, max_connections=3) as neon,
    ):
        await asyncio.gather(*(neon.operations.get(PROJECT, "op-1") for _ in range(50)))
    assert (len(server.received), server.connections) == (50, 3)


async def test_requests_sent_counts_further_tries_too() -> None:
    async with (
        MisbehavingServer(in_turn(http_response(503), http_response(content=OPERATION))) as server,
        client_of(server, retry=RetryPolicy(initial=0)) as neon,
    ):
        await neon.operations.get(PROJECT, "op-1")
        assert neon.requests_sent == 2


async def test_a_401_costs_exactly_one_request() -> None:
    async with (
        MisbehavingServer(in_turn(http_response(401, {"message": "no such key"}))) as server,
        client_of(server) as neon,
    ):
        with pytest.raises(AuthenticationError) as caught:
            await neon.operations.get(PROJECT, "op-1")
    [request] = server.received
    assert caught.value.message == "no such key"
    assert caught.value.request_id == request.headers["x-request-id"]


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH", "PUT"])
@pytest.mark.parametrize(
    "response", [drop(), drop(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{")]
)
async def test_a_mutation_whose_connection_drops_is_sent_once_and_may_have_been_done(
    method: str, response: Respond
) -> None:
    first = http_response(content={})
    async with (
        MisbehavingServer(in_turn(first, response)) as server,
        client_of(server) as neon,
    ):
        await neon.request("GET", "/projects")  # from here on the connection is a kept-alive one
        with pytest.raises(ConnectionLostError, match="may have been carried out") as caught:
            await neon.request(method, "/projects")
    assert [request.method for request in server.received] == ["GET", method]
    assert caught.value.maybe_delivered
    assert caught.value.request_id == server.received[1].headers["x-request-id"]


async def test_a_get_whose_connection_drops_is_sent_again() -> None:
    async with (
        MisbehavingServer(in_turn(drop(), http_response(content=OPERATION))) as server,
        client_of(server, retry=RetryPolicy(initial=0)) as neon,
    ):
        assert (await neon.operations.get(PROJECT, "op-1")).id == "op-1"
    assert len(server.received) == 2


async def test_where_nobody_listens_nothing_was_sent() -> None:
    async with MisbehavingServer(in_turn(hang)) as server:
        base_url = server.base_url
    async with NeonClient(API_KEY, base_url=base_url, retry=RetryPolicy.never()) as neon:
        with pytest.raises(ConnectionFailedError, match="nothing was sent") as caught:
            await neon.api_keys.create(key_name="ci")
    assert not caught.value.maybe_delivered
    assert isinstance(caught.value.__cause__, aiohttp.ClientError)


async def test_a_name_that_does_not_resolve_means_nothing_was_sent() -> None:
    neon = NeonClient(API_KEY, base_url="https://no-such-host.invalid", retry=RetryPolicy.never())
    async with neon:
        with pytest.raises(ConnectionFailedError):
            await neon.api_keys.create(key_name="ci")


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(Timeout(connect=3), "3"), (Timeout(read=2), "1.8"), (Timeout(total=1), "0.9")],
)
async def test_a_connection_that_is_never_accepted_means_nothing_was_sent(
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
async def test_a_hanging_mutation_is_given_up_and_may_have_been_done() -> None:
    async with (
        MisbehavingServer(in_turn(hang)) as server,
        client_of(server, timeout=Timeout(total=4)) as neon,
    ):
        with pytest.raises(RequestTimeoutError, match="4 s") as caught:
            await neon.api_keys.create(key_name="ci")
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.maybe_delivered
    assert len(server.received) == 1


@pytest.mark.virtual_time
async def test_time_spent_queueing_for_a_connection_is_not_taken_for_a_slow_answer() -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3)
        await http_response(content=OPERATION)(writer)

    async with (
        MisbehavingServer(in_turn(slow)) as server,
        client_of(server, timeout=Timeout(total=4), max_connections=1) as neon,
    ):
        await asyncio.gather(*(neon.operations.get(PROJECT, "op-1") for _ in range(5)))
    assert len(server.received) == 5


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_errors_and_never_followed(status: int) -> None:
    async with MisbehavingServer(in_turn(http_response(content=OPERATION))) as elsewhere:
        moved = http_response(status, headers={"Location": f"{elsewhere.base_url}{PATH}"})
        async with MisbehavingServer(in_turn(moved)) as server, client_of(server) as neon:
            with pytest.raises(APIError) as caught:
                await neon.operations.get(PROJECT, "op-1")
    assert caught.value.status == status
    assert elsewhere.received == []


@pytest.mark.parametrize(
    "body",
    [b"<html>welcome</html>", b'{"operation": {"id": "op', b'{"operations": []}', b"[]", b""],
)
async def test_a_200_that_cannot_be_read_says_where_and_what(body: bytes) -> None:
    response = http_response(body=body, headers={"x-neon-ret-request-id": "req-7"})
    async with MisbehavingServer(in_turn(response)) as server, client_of(server) as neon:
        with pytest.raises(InvalidResponseError) as caught:
            await neon.operations.get(PROJECT, "op-1")
    error = caught.value
    assert (error.method, error.path, error.status, error.request_id) == ("GET", PATH, 200, "req-7")
    assert error.excerpt == body.decode()
    assert len(server.received) == 1


@pytest.mark.parametrize("body", [b"<html>Bad Gateway</html>", b"", b"[1]", b'{"message": 7}'])
async def test_an_error_that_is_not_the_apis_json_is_an_api_error_all_the_same(
    body: bytes,
) -> None:
    async with (
        MisbehavingServer(in_turn(http_response(400, body=body))) as server,
        client_of(server) as neon,
    ):
        with pytest.raises(APIError) as caught:
            await neon.operations.get(PROJECT, "op-1")
    assert (caught.value.status, caught.value.code) == (400, "")
    assert caught.value.message


async def test_what_is_not_http_is_a_lost_connection() -> None:
    async with (
        MisbehavingServer(in_turn(raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"))) as server,
        client_of(server, retry=RetryPolicy.never()) as neon,
    ):
        with pytest.raises(ConnectionLostError):
            await neon.operations.get(PROJECT, "op-1")


@pytest.mark.virtual_time
async def test_cancelling_a_call_drops_its_connection() -> None:
    async with MisbehavingServer(in_turn(hang)) as server, client_of(server) as neon:
        call = asyncio.create_task(neon.operations.get(PROJECT, "op-1"))
        await asyncio.sleep(1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert neon.requests_sent == 1


async def test_cookies_are_not_kept() -> None:
    response = http_response(content=OPERATION, headers={"Set-Cookie": "session=1; Path=/"})
    async with MisbehavingServer(in_turn(response)) as server:
        # No cookie is ever kept for an address.
        url = server.base_url.replace("127.0.0.1", "localhost")
        async with NeonClient(API_KEY, base_url=url) as neon:
            for _ in range(2):
                await neon.operations.get(PROJECT, "op-1")
    assert ["cookie" in request.headers for request in server.received] == [False, False]


async def test_the_decoder_of_an_answer_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fresh(msgspec.Struct):
        pass

    made: list[object] = []
    decoder = msgspec.json.Decoder

    def counting(kind: Any, **settings: Any) -> Any:
        made.append(kind)
        return decoder(kind, **settings)

    monkeypatch.setattr("msgspec.json.Decoder", counting)
    async with (
        MisbehavingServer(in_turn(http_response(content={}))) as server,
        client_of(server) as neon,
    ):
        for _ in range(3):
            await neon.request("GET", "/projects", type=Fresh)
    assert made == [Fresh]
