"""API keys and passwords are hidden in errors, their frames and pickles, and in logs."""

import asyncio
import contextlib
import gc
import logging
import pickle
import traceback
import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rich.traceback

from neonctl_async import Hooks, NeonClient, NeonError, RateBudget, RetryPolicy, Timeout
from neonctl_async.testing import FakeClockLoop
from tests.support.proxy import ConnectProxy
from tests.support.records import PROJECT, JsonObject, branch_json, operation_json
from tests.support.server import (
    MisbehavingServer,
    Received,
    Respond,
    drop,
    hang,
    http_response,
    in_sequence,
    raw,
)

KEY = "kq7zmark1kq7z"  # without a prefix that the redaction recognizes
PASSWORD = "pw9xmark2pw9x"
MARKS = ("kq7zmark1", "pw9xmark2")
URI = f"postgresql://ada:{PASSWORD}@h.example.com/db"
TESTS = str(Path(__file__).parent)

Call = Callable[[NeonClient], Awaitable[object]]


def is_test_code(filename: str) -> bool:
    return filename.startswith(TESTS)


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error with its causes and contexts, suppressed ones included."""
    remaining: list[BaseException | None] = [error]
    seen: set[int] = set()
    while remaining:
        current = remaining.pop()
        if current is not None and id(current) not in seen:
            seen.add(id(current))
            yield current
            remaining += [current.__cause__, current.__context__]


def outputs(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield each place where an error may show data, and its content."""
    for linked in chain(error):
        kind = type(linked).__name__
        yield f"str of {kind}", str(linked)
        yield f"repr of {kind}", repr(linked)
        yield f"attributes of {kind}", repr(vars(linked))
        for frame in traceback.TracebackException.from_exception(linked, capture_locals=True).stack:
            if not is_test_code(frame.filename):
                for name, output in (frame.locals or {}).items():
                    yield f"{frame.filename}:{frame.lineno}: {name} ({kind})", output
        trace = rich.traceback.Traceback.extract(
            type(linked), linked, linked.__traceback__, show_locals=True, locals_max_string=10_000
        )
        for stack in trace.stacks:
            for rich_frame in stack.frames:
                if not is_test_code(rich_frame.filename):
                    for name, node in (rich_frame.locals or {}).items():
                        yield (
                            f"rich: {rich_frame.filename}:{rich_frame.lineno}: {name} ({kind})",
                            str(node),
                        )
    with contextlib.suppress(TypeError):  # errors that contain a Secret cannot be pickled
        yield "pickle", pickle.dumps(error).decode(errors="replace")


def assert_hidden(error: BaseException | None, caplog: pytest.LogCaptureFixture) -> None:
    assert isinstance(error, NeonError | ValueError | TypeError | TimeoutError)
    output = [*outputs(error), ("log", caplog.text)]
    output += [
        (f"log of {record.name}", f"{record.msg!r} {record.args!r}") for record in caplog.records
    ]
    leaks = [place for place, text in output if any(mark in text for mark in MARKS)]
    assert not leaks, "\n".join(["secrets are visible in:", *leaks])


@pytest.fixture(autouse=True)
def log_everything(caplog: pytest.LogCaptureFixture) -> None:
    for name in (None, "neonctl_async", "aiohttp", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)


def run(scenario: Awaitable[None]) -> BaseException | None:
    """Return the exception of ``scenario``. Format it outside the loop: that reads files."""

    async def catch() -> BaseException | None:
        [outcome] = await asyncio.gather(scenario, return_exceptions=True)
        return outcome

    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        return runner.run(catch())


async def create_key(neon: NeonClient) -> object:
    return await neon.api_keys.create(key_name="ci")


async def create_branch(neon: NeonClient) -> object:
    return await neon.branches.create(PROJECT, name="preview", wait=3.0)


async def list_all(neon: NeonClient) -> object:
    return await neon.operations.list(PROJECT).collect()


async def wait(neon: NeonClient) -> object:
    return await neon.operations.wait(
        (await neon.branches.create(PROJECT, name="preview")), timeout=3
    )


def log_event(event: object) -> None:
    logging.getLogger("hooks").debug("%r", event)


def client(base_url: str, **settings: Any) -> NeonClient:
    return NeonClient(
        KEY,
        base_url=base_url,
        timeout=Timeout(total=2),
        retry=RetryPolicy(attempts=2, initial=0),
        budget=RateBudget.unlimited(),
        hooks=[Hooks(**dict.fromkeys(Hooks.__struct_fields__, log_event))],
        **settings,
    )


ERROR_BODY: JsonObject = {
    "code": KEY,
    "request_id": KEY,
    "message": f'no {KEY}; password={PASSWORD} of {URI} in {{"password": "{PASSWORD}"}}',
    "password": PASSWORD,
}
BODY_WITH_SECRETS: JsonObject = {
    "id": "one",
    "key": KEY,
    "password": PASSWORD,
    "connection_uri": URI,
}
HEADERS = {"x-neon-ret-request-id": KEY, "Location": f"https://h.example.com/?key={KEY}"}
HEAD_WITH_SECRETS = f"HTTP/1.1 200 OK\r\nX-Sent: Bearer {KEY}\r\nSet-Cookie: is={PASSWORD}\r\n"

RESPONSES: dict[str, Respond] = {
    **{
        f"{status} of JSON": http_response(status, ERROR_BODY, headers=HEADERS)
        for status in (302, 400, 401, 409, 423, 429, 500, 503)
    },
    "400 of text": http_response(
        400, body=f"key={KEY} password={PASSWORD}".encode(), headers=HEADERS
    ),
    "200 of another shape": http_response(200, BODY_WITH_SECRETS, headers=HEADERS),
    "200 of a nested shape": http_response(
        200,
        {
            "project": BODY_WITH_SECRETS,
            "branches": [BODY_WITH_SECRETS],
            "operations": [BODY_WITH_SECRETS],
        },
    ),
    "200 truncated": http_response(200, body=f'{{"id": 1, "password": "{PASSWORD}'.encode()),
    "200 of HTML": http_response(200, body=f"<p>{URI}</p><p>password={PASSWORD}</p>{KEY}".encode()),
    "200 that is not UTF-8": http_response(
        200, body=f'{{"id": "\xff", "key": "{KEY}"}}'.encode("latin-1")
    ),
    "reset": drop(),
    "reset in the middle": drop(
        f'{HEAD_WITH_SECRETS}Content-Length: 500\r\n\r\n{{"password": "{PASSWORD}'.encode()
    ),
    "not HTTP": raw(f'{{"password": "{PASSWORD}", "key": "{KEY}"}}\r\n\r\n'.encode()),
    "bad header": raw(f"HTTP/1.1 200 OK\r\npassword={PASSWORD}\r\n\r\n".encode()),
    "bad chunk": raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + f"{URI}\r\n".encode()
    ),
    "hang": hang,
    "hang in the middle": raw(
        f'{HEAD_WITH_SECRETS}Content-Length: 500\r\n\r\n{{"password": "{PASSWORD}'.encode()
    ),
}


@pytest.mark.parametrize("call", [list_all, create_branch])
@pytest.mark.parametrize("name", RESPONSES)
def test_failed_request_shows_no_secret(
    name: str, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_sequence(RESPONSES[name])) as server:
            async with client(server.base_url) as neon:
                await call(neon)

    assert_hidden(run(scenario()), caplog)


def test_refused_connection_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_sequence(hang)) as server:
            url = server.base_url
        async with client(url) as neon:
            await create_key(neon)

    assert_hidden(run(scenario()), caplog)


@pytest.mark.parametrize("call", [create_branch, wait])
@pytest.mark.parametrize(
    "end", ["failed", "running", "gone", "revoked", "unreadable", "failing", "reset"]
)
def test_failed_wait_shows_no_secret(
    end: str, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    created = {
        "branch": branch_json(),
        "operations": [operation_json("a", "running", at=-1)],
        "roles": [{**branch_json(), "branch_id": "br-1", "password": PASSWORD}],
        "connection_uris": [
            {
                "connection_uri": URI,
                "connection_parameters": {
                    "database": "db",
                    "role": "ada",
                    "host": "h.example.com",
                    "password": PASSWORD,
                },
            }
        ],
    }
    polls: dict[str, Respond] = {
        "gone": http_response(404, ERROR_BODY),
        "revoked": http_response(401, ERROR_BODY, headers=HEADERS),
        "unreadable": http_response(200, BODY_WITH_SECRETS),
        "failing": http_response(503, ERROR_BODY),
        "reset": drop(),
    }

    def respond(request: Received) -> Respond:
        if request.method == "POST":
            return http_response(201, created)
        state = http_response(content={"operation": operation_json("a", end, error="disk full")})
        return polls.get(end, state)

    async def scenario() -> None:
        async with MisbehavingServer(respond) as server, client(server.base_url) as neon:
            await call(neon)

    assert_hidden(run(scenario()), caplog)


def test_closed_client_shows_no_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(*, during_the_call: bool) -> None:
        async with MisbehavingServer(in_sequence(hang)) as server:
            neon = client(server.base_url)
            call = asyncio.ensure_future(create_key(neon))
            await asyncio.sleep(1)
            await neon.aclose()
            await asyncio.wait([call])
            await (call if during_the_call else create_key(neon))

    assert_hidden(run(scenario(during_the_call=True)), caplog)
    assert_hidden(run(scenario(during_the_call=False)), caplog)


@pytest.mark.parametrize(
    ("args", "settings"),
    [
        ([KEY], {"timeout": 5.0}),
        ([KEY], {"max_connections": 0}),
        ([KEY], {"base_url": "h.example.com"}),
        ([KEY], {"base_url": f"https://ada:{PASSWORD}@h.example.com/api/v2"}),
        ([KEY], {"base_url": f"https://ada:{PASSWORD}@[::1/api/v2"}),
        ([KEY], {"base_url": f"https://h.example.com/api/v2?key={KEY}"}),
        ([KEY], {"base_url": KEY}),
        (["https://h.example.com"], {"base_url": KEY}),
        ([f"{KEY} {KEY}"], {}),
        ([f"{KEY}\n{KEY}"], {}),
        ([f"{KEY}\ud800"], {}),
        ([KEY.encode()], {}),
    ],
)
def test_invalid_settings_show_no_secret(
    args: list[Any], settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        NeonClient(*args, **settings)
    assert_hidden(caught.value, caplog)


@pytest.mark.parametrize(
    ("key", "url"),
    [
        (KEY, "console.neon.tech"),
        (KEY, f"https://ada:{PASSWORD}@h.example.com"),
        (KEY, KEY),
        (f"{KEY} {KEY}", "https://h.example.com"),
    ],
)
def test_invalid_environment_shows_no_secret(
    key: str, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NEON_API_KEY", key)
    monkeypatch.setenv("NEON_API_HOST", url)
    with pytest.raises(ValueError, match=r"NEON_API_HOST|API key") as caught:
        NeonClient()
    assert_hidden(caught.value, caplog)


@pytest.mark.parametrize("is_listening", [False, True])
def test_proxy_address_shows_no_password(
    is_listening: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with ConnectProxy(status=407) as proxy:
            url = proxy.url.replace("://", f"://ada:{PASSWORD}@")
            monkeypatch.setenv("HTTPS_PROXY", url if is_listening else f"{url[:-5]}1")
            async with client("https://h.example.com", trust_env=True) as neon:
                await create_key(neon)

    assert_hidden(run(scenario()), caplog)


def test_proxy_that_never_responds_shows_no_secret(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_sequence(hang)) as proxy:
            address = f"http://ada:{PASSWORD}@127.0.0.1:{proxy.port}"
            monkeypatch.setenv("HTTPS_PROXY", address)
            async with client("https://h.example.com", trust_env=True) as neon, asyncio.timeout(1):
                await create_key(neon)

    assert_hidden(run(scenario()), caplog)


def test_server_without_tls_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_sequence(http_response())) as server:
            async with client(server.base_url.replace("http:", "https:")) as neon:
                await create_key(neon)

    assert_hidden(run(scenario()), caplog)


@pytest.mark.filterwarnings("always")
def test_unclosed_client_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_sequence(http_response(content={}))) as server:
            neon = client(server.base_url)
            await neon.request("GET", "/projects")
            del neon
            gc.collect()
            await client(server.base_url).request("GET", "/no such path")

    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        assert_hidden(run(scenario()), caplog)
    output = " ".join(str(warning.message) for warning in caught_warnings)
    assert "Unclosed" in output  # the session or its connector, whichever is collected first
    assert not any(mark in output for mark in MARKS)


@pytest.mark.parametrize("status", [400, 503])
def test_request_body_shows_no_password(status: int, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        body = {"role": {"name": "ada", "password": PASSWORD}}
        async with MisbehavingServer(in_sequence(http_response(status))) as server:
            async with client(server.base_url) as neon:
                await neon.request("POST", "/projects", body=body)

    assert_hidden(run(scenario()), caplog)


@pytest.mark.parametrize("name", ["hang", "hang in the middle"])
def test_cancelled_call_shows_no_secret(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_sequence(RESPONSES[name])) as server:
            async with client(server.base_url) as neon, asyncio.timeout(1):
                await neon.request("POST", "/projects", body={"password": PASSWORD})

    error = run(scenario())
    assert isinstance(error, TimeoutError)
    assert_hidden(error, caplog)
