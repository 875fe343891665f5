"""No key and no password shows in an error, its frames, its pickle or the log."""

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
    in_turn,
    raw,
)

KEY = "kq7zmark1kq7z"  # without the prefix by which every key is hidden
PASSWORD = "pw9xmark2pw9x"
MARKS = ("kq7zmark1", "pw9xmark2")
URI = f"postgresql://ada:{PASSWORD}@h.example.com/db"
TESTS = str(Path(__file__).parent)

Call = Callable[[NeonClient], Awaitable[object]]


def is_ours(filename: str) -> bool:
    return filename.startswith(TESTS)


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error with all that led to it, suppressed or not."""
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            todo += [one.__cause__, one.__context__]


def showings(error: BaseException) -> Iterator[tuple[str, str]]:
    """Where an error may show what, and what it shows there."""
    for one in chain(error):
        kind = type(one).__name__
        yield f"str of {kind}", str(one)
        yield f"repr of {kind}", repr(one)
        yield f"attributes of {kind}", repr(vars(one))
        for frame in traceback.TracebackException.from_exception(one, capture_locals=True).stack:
            if not is_ours(frame.filename):
                for name, shown in (frame.locals or {}).items():
                    yield f"{frame.filename}:{frame.lineno}: {name} ({kind})", shown
        trace = rich.traceback.Traceback.extract(
            type(one), one, one.__traceback__, show_locals=True, locals_max_string=10_000
        )
        for stack in trace.stacks:
            for told in stack.frames:
                if not is_ours(told.filename):
                    for name, node in (told.locals or {}).items():
                        yield f"rich: {told.filename}:{told.lineno}: {name} ({kind})", str(node)
    with contextlib.suppress(TypeError):  # what holds a Secret is not pickled
        yield "pickle", pickle.dumps(error).decode(errors="replace")


def check(error: BaseException | None, caplog: pytest.LogCaptureFixture) -> None:
    assert isinstance(error, NeonError | ValueError | TypeError | TimeoutError)
    shown = [*showings(error), ("log", caplog.text)]
    shown += [(f"log of {one.name}", f"{one.msg!r} {one.args!r}") for one in caplog.records]
    leaks = [place for place, text in shown if any(mark in text for mark in MARKS)]
    assert not leaks, "\n".join(["secrets show in:", *leaks])


@pytest.fixture(autouse=True)
def log_everything(caplog: pytest.LogCaptureFixture) -> None:
    for name in (None, "neonctl_async", "aiohttp", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)


def run(scenario: Awaitable[None]) -> BaseException | None:
    """What ``scenario`` raises; formatted outside the loop, where files may be read."""

    async def caught() -> BaseException | None:
        [outcome] = await asyncio.gather(scenario, return_exceptions=True)
        return outcome

    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        return runner.run(caught())


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
    logging.getLogger("heard").debug("%r", event)


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


ECHO: JsonObject = {
    "code": KEY,
    "request_id": KEY,
    "message": f'no {KEY}; password={PASSWORD} of {URI} in {{"password": "{PASSWORD}"}}',
    "password": PASSWORD,
}
HOLDING: JsonObject = {"id": "one", "key": KEY, "password": PASSWORD, "connection_uri": URI}
HEADERS = {"x-neon-ret-request-id": KEY, "Location": f"https://h.example.com/?key={KEY}"}
HEAD_THAT_TELLS = f"HTTP/1.1 200 OK\r\nX-Sent: Bearer {KEY}\r\nSet-Cookie: is={PASSWORD}\r\n"

RESPONSES: dict[str, Respond] = {
    **{
        f"{status} of JSON": http_response(status, ECHO, headers=HEADERS)
        for status in (302, 400, 401, 409, 423, 429, 500, 503)
    },
    "400 of text": http_response(
        400, body=f"key={KEY} password={PASSWORD}".encode(), headers=HEADERS
    ),
    "200 of another shape": http_response(200, HOLDING, headers=HEADERS),
    "200 of a shape one deeper": http_response(
        200, {"project": HOLDING, "branches": [HOLDING], "operations": [HOLDING]}
    ),
    "200 truncated": http_response(200, body=f'{{"id": 1, "password": "{PASSWORD}'.encode()),
    "200 of HTML": http_response(200, body=f"<p>{URI}</p><p>password={PASSWORD}</p>{KEY}".encode()),
    "200 of no UTF-8": http_response(
        200, body=f'{{"id": "\xff", "key": "{KEY}"}}'.encode("latin-1")
    ),
    "reset": drop(),
    "reset in the middle": drop(
        f'{HEAD_THAT_TELLS}Content-Length: 500\r\n\r\n{{"password": "{PASSWORD}'.encode()
    ),
    "no HTTP": raw(f'{{"password": "{PASSWORD}", "key": "{KEY}"}}\r\n\r\n'.encode()),
    "bad header": raw(f"HTTP/1.1 200 OK\r\npassword={PASSWORD}\r\n\r\n".encode()),
    "bad chunk": raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + f"{URI}\r\n".encode()
    ),
    "hang": hang,
    "hang in the middle": raw(
        f'{HEAD_THAT_TELLS}Content-Length: 500\r\n\r\n{{"password": "{PASSWORD}'.encode()
    ),
}


@pytest.mark.parametrize("call", [list_all, create_branch])
@pytest.mark.parametrize("name", RESPONSES)
def test_an_answer_that_is_an_error(
    name: str, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_turn(RESPONSES[name])) as server:
            async with client(server.base_url) as neon:
                await call(neon)

    check(run(scenario()), caplog)


def test_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_turn(hang)) as server:
            url = server.base_url
        async with client(url) as neon:
            await create_key(neon)

    check(run(scenario()), caplog)


@pytest.mark.parametrize("call", [create_branch, wait])
@pytest.mark.parametrize(
    "end", ["failed", "running", "gone", "revoked", "unreadable", "failing", "reset"]
)
def test_a_wait_that_ends_badly(end: str, call: Call, caplog: pytest.LogCaptureFixture) -> None:
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
        "gone": http_response(404, ECHO),
        "revoked": http_response(401, ECHO, headers=HEADERS),
        "unreadable": http_response(200, HOLDING),
        "failing": http_response(503, ECHO),
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

    check(run(scenario()), caplog)


def test_a_client_that_is_closed_meanwhile_and_afterwards(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(*, meanwhile: bool) -> None:
        async with MisbehavingServer(in_turn(hang)) as server:
            neon = client(server.base_url)
            call = asyncio.ensure_future(create_key(neon))
            await asyncio.sleep(1)
            await neon.aclose()
            await asyncio.wait([call])
            await (call if meanwhile else create_key(neon))

    check(run(scenario(meanwhile=True)), caplog)
    check(run(scenario(meanwhile=False)), caplog)


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
def test_settings_that_cannot_be(
    args: list[Any], settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        NeonClient(*args, **settings)
    check(caught.value, caplog)


@pytest.mark.parametrize(
    ("key", "url"),
    [
        (KEY, "console.neon.tech"),
        (KEY, f"https://ada:{PASSWORD}@h.example.com"),
        (KEY, KEY),
        (f"{KEY} {KEY}", "https://h.example.com"),
    ],
)
def test_an_environment_that_cannot_be(
    key: str, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NEON_API_KEY", key)
    monkeypatch.setenv("NEON_API_HOST", url)
    with pytest.raises(ValueError, match=r"NEON_API_HOST|API key") as caught:
        NeonClient()
    check(caught.value, caplog)


@pytest.mark.parametrize("is_listening", [False, True])
def test_a_proxy_whose_address_holds_a_password(
    is_listening: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with ConnectProxy(status=407) as proxy:
            url = proxy.url.replace("://", f"://ada:{PASSWORD}@")
            monkeypatch.setenv("HTTPS_PROXY", url if is_listening else f"{url[:-5]}1")
            async with client("https://h.example.com", trust_env=True) as neon:
                await create_key(neon)

    check(run(scenario()), caplog)


def test_a_proxy_that_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_turn(hang)) as proxy:
            address = f"http://ada:{PASSWORD}@127.0.0.1:{proxy.port}"
            monkeypatch.setenv("HTTPS_PROXY", address)
            async with client("https://h.example.com", trust_env=True) as neon, asyncio.timeout(1):
                await create_key(neon)

    check(run(scenario()), caplog)


def test_what_speaks_no_tls(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_turn(http_response())) as server:
            async with client(server.base_url.replace("http:", "https:")) as neon:
                await create_key(neon)

    check(run(scenario()), caplog)


@pytest.mark.filterwarnings("always")
def test_a_client_that_nobody_closed(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_turn(http_response(content={}))) as server:
            neon = client(server.base_url)
            await neon.request("GET", "/projects")
            del neon
            gc.collect()
            await client(server.base_url).request("GET", "/no such path")

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        check(run(scenario()), caplog)
    shown = " ".join(str(one.message) for one in warned)
    assert "Unclosed" in shown  # the session or its connector, whichever is collected first
    assert not any(mark in shown for mark in MARKS)


@pytest.mark.parametrize("status", [400, 503])
def test_a_body_that_holds_a_password(status: int, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        body = {"role": {"name": "ada", "password": PASSWORD}}
        async with MisbehavingServer(in_turn(http_response(status))) as server:
            async with client(server.base_url) as neon:
                await neon.request("POST", "/projects", body=body)

    check(run(scenario()), caplog)


@pytest.mark.parametrize("name", ["hang", "hang in the middle"])
def test_a_call_that_is_cancelled(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with MisbehavingServer(in_turn(RESPONSES[name])) as server:
            async with client(server.base_url) as neon, asyncio.timeout(1):
                await neon.request("POST", "/projects", body={"password": PASSWORD})

    error = run(scenario())
    assert isinstance(error, TimeoutError)
    check(error, caplog)
