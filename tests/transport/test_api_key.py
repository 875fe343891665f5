"""An API key from a function."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from neonctl_async import (
    AuthenticationError,
    ClientClosedError,
    ConfigurationError,
    NeonClient,
    RateBudget,
    RetryPolicy,
    Secret,
    Timeout,
)
from neonctl_async.config import KeyFunction
from tests.support.records import PROJECT, operation_json, ref
from tests.support.server import MisbehavingServer, Received, Respond, http_response
from tests.support.until import until
from tests.test_secrets import assert_hidden

OLD = "kq7zmark1kq7z"
NEW = "pw9xmark2pw9x"
WRONG: Any = 7
NONE: Any = None


class Function:
    """A function that returns keys one after another, and the last one again and again."""

    def __init__(self, *keys: str | Secret | Exception) -> None:
        self.keys = list(keys)
        self.calls = 0

    def __call__(self) -> str | Secret:
        self.calls += 1
        key = self.keys.pop(0) if len(self.keys) > 1 else self.keys[0]
        if isinstance(key, Exception):
            raise key
        return key

    async def later(self) -> str | Secret:
        await asyncio.sleep(0.01)
        return self()


class Vault:
    """Accepts one key, and records the keys of all requests."""

    def __init__(self, accepted: str = NEW) -> None:
        self.accepted = accepted
        self.sent: list[str] = []

    def respond(self, received: Received) -> Respond:
        key = received.headers["authorization"].removeprefix("Bearer ")
        self.sent.append(key)
        if key != self.accepted:
            return http_response(401, {"message": f"no such key: {key}"})
        operation = operation_json(status="finished")
        return http_response(200, {"operation": operation, "operations": [operation]})


@asynccontextmanager
async def client(
    vault: Vault, function: KeyFunction, **settings: Any
) -> AsyncGenerator[NeonClient]:
    async with MisbehavingServer(vault.respond) as server:
        settings = {"budget": RateBudget.unlimited(), **settings}
        async with NeonClient(function, base_url=server.base_url, **settings) as neon:
            yield neon


async def read(neon: NeonClient) -> str:
    return (await neon.operations.get(PROJECT, "op-1")).id


Of = Callable[[Function], KeyFunction]


def sync(function: Function) -> KeyFunction:
    return function


def later(function: Function) -> KeyFunction:
    return function.later


BOTH = pytest.mark.parametrize("of", [sync, later])


@BOTH
@pytest.mark.parametrize("new", [NEW, Secret(NEW), f" {NEW}\n"])
async def test_key_is_asked_for_at_the_first_request_and_kept(of: Of, new: str | Secret) -> None:
    vault, function = Vault(), Function(new)
    async with client(vault, of(function)) as neon:
        assert function.calls == 0
        assert [await read(neon), await read(neon)] == ["op-1", "op-1"]
    assert (function.calls, vault.sent) == (1, [NEW, NEW])


@BOTH
async def test_request_is_sent_again_with_a_changed_key(of: Of) -> None:
    vault, function = Vault(), Function(OLD, NEW)
    async with client(vault, of(function), retry=RetryPolicy.never()) as neon:
        assert await read(neon) == "op-1"
        assert await read(neon) == "op-1"
        assert neon.requests_sent == 3
    assert (function.calls, vault.sent) == (2, [OLD, NEW, NEW])


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH", "PUT"])
async def test_refused_mutation_is_sent_again_with_a_changed_key(method: str) -> None:
    vault = Vault()
    async with client(vault, Function(OLD, NEW)) as neon:
        await neon.request(method, "/projects", body={})
    assert vault.sent == [OLD, NEW]


@BOTH
async def test_rejected_key_costs_one_request(of: Of) -> None:
    vault, function = Vault(), Function(OLD)
    async with client(vault, of(function)) as neon:
        for _ in range(2):
            with pytest.raises(AuthenticationError):
                await read(neon)
    assert (function.calls, vault.sent) == (3, [OLD, OLD])


async def test_changed_key_that_is_refused_too_is_not_replaced_again() -> None:
    vault, function = Vault("another"), Function(OLD, NEW, "another")
    async with client(vault, function) as neon:
        with pytest.raises(AuthenticationError, match="no such key"):
            await read(neon)
    assert (function.calls, vault.sent) == (2, [OLD, NEW])


@BOTH
@pytest.mark.parametrize("second", [OLD, NEW])
async def test_concurrent_401s_ask_once(of: Of, second: str) -> None:
    vault, function = Vault(), Function(OLD, second)
    async with client(vault, of(function)) as neon:
        results = await asyncio.gather(*(read(neon) for _ in range(20)), return_exceptions=True)
    assert function.calls == 2
    assert len(vault.sent) == (20 if second == OLD else 40)
    kind = AuthenticationError if second == OLD else str
    assert {type(result) for result in results} == {kind}


async def test_poll_is_sent_again_with_a_changed_key() -> None:
    vault, function = Vault(), Function(OLD, NEW)
    async with client(vault, function) as neon:
        [operation] = await neon.operations.wait([ref("op-1")])
    assert operation.status == "finished"
    assert vault.sent == [OLD, NEW]


async def test_request_that_was_sent_with_an_older_key_uses_the_newer_one() -> None:
    vault, function = Vault(OLD), Function(OLD, NEW)
    released = asyncio.Event()

    def respond(received: Received) -> Respond:
        if len(vault.sent) == 1:  # the second request, whose response comes late
            vault.accepted = NEW
            respond_to = vault.respond(received)

            async def late(writer: asyncio.StreamWriter) -> None:
                await released.wait()
                await respond_to(writer)

            return late
        return vault.respond(received)

    async with (
        MisbehavingServer(respond) as server,
        NeonClient(function, base_url=server.base_url) as neon,
    ):
        await read(neon)
        slow = asyncio.create_task(read(neon))
        await until(lambda: len(vault.sent) == 2)
        assert await read(neon) == "op-1"
        released.set()
        assert await slow == "op-1"
    assert (function.calls, vault.sent) == (2, [OLD, OLD, OLD, NEW, NEW])


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (OSError("no vault"), "raised OSError$"),
        (WRONG, "returned no key: its result is a int: expected a string or a Secret$"),
        (NONE, "returned no key: its result is None: expected a string or a Secret$"),
        (" ", "returned no key: the API key is empty$"),
        ("two words", "returned no key: the API key contains"),
    ],
)
async def test_function_without_a_key_is_an_error_before_the_request(
    key: str | Exception, message: str
) -> None:
    vault, function = Vault(), Function(key, NEW)
    async with client(vault, function) as neon:
        with pytest.raises(ConfigurationError, match=f"^the function that api_key names {message}"):
            await read(neon)
        assert vault.sent == []
        assert await read(neon) == "op-1"


async def test_function_that_fails_after_a_401_is_the_cause_of_the_error() -> None:
    failure = OSError("no vault")
    vault, function = Vault(), Function(OLD, failure, NEW)
    async with client(vault, function) as neon:
        with pytest.raises(AuthenticationError) as caught:
            await read(neon)
        assert caught.value.__cause__ is failure
        assert await read(neon) == "op-1"
    assert vault.sent == [OLD, OLD, NEW]


async def test_function_that_awaits_a_cancelled_task_fails() -> None:
    refreshing = asyncio.ensure_future(asyncio.Event().wait())
    refreshing.cancel()

    async def refreshed() -> str:
        await refreshing
        return NEW

    async with client(Vault(), refreshed) as neon:
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group:
                group.create_task(read(neon))
        [error] = caught.value.exceptions
        assert isinstance(error, ConfigurationError)
        assert str(error) == "the function that api_key names raised CancelledError"


async def test_cancelled_call_cancels_the_function() -> None:
    is_asked = asyncio.Event()

    async def hang() -> str:
        is_asked.set()
        await asyncio.Event().wait()
        return NEW

    async with client(Vault(), hang) as neon:
        reading = asyncio.create_task(read(neon))
        await is_asked.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


@pytest.mark.virtual_time
async def test_function_that_hangs_is_given_up_after_the_timeout() -> None:
    async def hang() -> str:
        await asyncio.Event().wait()
        return NEW

    async with client(Vault(), hang, timeout=Timeout(total=3.0)) as neon:
        with pytest.raises(ConfigurationError, match=r"did not return in time$"):
            await read(neon)


async def test_calls_that_wait_for_the_function_share_its_failure() -> None:
    vault, function = Vault(), Function(OSError("no vault"), NEW)
    async with client(vault, function.later) as neon:
        results = await asyncio.gather(*(read(neon) for _ in range(5)), return_exceptions=True)
        assert {type(result) for result in results} == {ConfigurationError}
        assert await read(neon) == "op-1"
    assert function.calls == 2


async def test_closing_the_client_ends_a_function_that_hangs() -> None:
    is_asked = asyncio.Event()

    async def hang() -> str:
        is_asked.set()
        await asyncio.Event().wait()
        return NEW

    async with client(Vault(), hang) as neon:
        reading = asyncio.create_task(read(neon))
        await is_asked.wait()
        await neon.aclose()
        with pytest.raises(ClientClosedError):
            await reading


async def test_call_goes_on_if_another_one_is_cancelled_while_it_asks() -> None:
    vault, function = Vault(), Function(NEW)
    is_asked = asyncio.Event()

    async def ask() -> str | Secret:
        if not is_asked.is_set():
            is_asked.set()
            await asyncio.Event().wait()
        return function()

    async with client(vault, ask) as neon:
        first, second = (asyncio.create_task(read(neon)) for _ in range(2))
        await is_asked.wait()
        first.cancel()
        assert await second == "op-1"
        assert first.cancelled()


def test_shared_budget_needs_the_name_of_the_account(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    with pytest.raises(ConfigurationError, match=r"pass RateBudget\.shared\(…, account='NAME'\)$"):
        NeonClient(Function(NEW), budget=RateBudget.shared(url))
    NeonClient(Function(NEW), budget=RateBudget.shared(url, account="ci"))


def test_call_of_the_function_is_refused_with_a_hint() -> None:
    called: Any = Function(NEW).later()
    with pytest.raises(ConfigurationError, match=r"^api_key is a coroutine: pass the function, "):
        NeonClient(called)


def test_function_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_KEY", "not a key")
    NeonClient(Function(NEW))


BYTES: Any = OLD.encode()
LIST: Any = [OLD]


@pytest.mark.parametrize(
    "keys",
    [[OLD], [OLD, NEW], [f"{OLD} {NEW}"], [OLD, f"{NEW} {OLD}"], [BYTES], [LIST], [Secret(BYTES)]],
)
async def test_no_key_is_shown(keys: Sequence[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    function = Function(*keys)
    async with client(Vault("another"), function) as neon:
        with pytest.raises((AuthenticationError, ConfigurationError)) as caught:
            await read(neon)
        assert_hidden(caught.value, caplog)
        assert OLD not in repr(vars(neon))
        # A response may quote the key that was replaced.
        with pytest.raises((AuthenticationError, ConfigurationError)) as caught:
            await read(neon)
        assert_hidden(caught.value, caplog)


async def test_arguments_of_the_function_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    def ask(token: str) -> str:
        del token
        return "two words"

    async with client(Vault(), partial(ask, NEW)) as neon:
        with pytest.raises(ConfigurationError) as caught:
            await read(neon)
        assert_hidden(caught.value, caplog)
    with pytest.raises(ConfigurationError) as caught:
        NeonClient(partial(ask, NEW), base_url="nowhere")
    assert_hidden(caught.value, caplog)
