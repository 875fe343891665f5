"""The store in a file."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from neonctl_async import NeonClient, RateBudget
from neonctl_async.transport.shared import sqlite_store
from neonctl_async.transport.shared.messages import Reply, Request
from neonctl_async.transport.shared.sqlite_store import SqliteStore
from tests.support.records import API_KEY
from tests.support.server import MisbehavingServer, http_response
from tests.support.until import until
from tests.transport.shared.clients import Neon, SharingClient
from tests.transport.shared.kills import check_limits_through_kills
from tests.transport.shared.requests import ends, granted, request_of


@asynccontextmanager
async def opened(
    path: Path, account: str = "account", clock: Callable[[], float] = time.monotonic
) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(path, account, clock)
    try:
        yield store
    finally:
        await store.aclose()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


async def test_two_clients_share_the_slots_of_a_route(path: Path) -> None:
    async with opened(path) as one, opened(path) as other:
        assert granted(await one.exchange(request_of("a", wants=30))) == 30
        assert granted(await other.exchange(request_of("b", wants=30))) == 10


async def test_each_account_has_its_own_slots(path: Path) -> None:
    async with opened(path, "one") as one, opened(path, "two") as other:
        assert granted(await one.exchange(request_of("a", wants=30))) == 30
        assert granted(await other.exchange(request_of("a", wants=30))) == 30


async def test_data_outlives_the_client(path: Path) -> None:
    async with opened(path) as store:
        await store.exchange(request_of("a", wants=30))
        await store.exchange(request_of("a", slots=ends(30)))
    async with opened(path) as store:
        assert (await store.exchange(request_of("b"))).used == 30


def exchange_all(
    path: Path, *requests: Request, clock: Callable[[], float] = time.monotonic
) -> list[Reply]:
    """Send messages to a store, on an event loop of their own, and close the store."""

    async def exchange() -> list[Reply]:
        async with opened(path, clock=clock) as store:
            return [await store.exchange(request) for request in requests]

    return asyncio.run(exchange())


def execute(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_only_the_owner_can_read_the_file(path: Path) -> None:
    exchange_all(path, request_of("a"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_deleted_file_is_created_again(path: Path) -> None:
    async def exchange() -> None:
        async with opened(path) as store:
            await store.exchange(request_of("a", wants=3))
            await asyncio.to_thread(path.unlink)
            assert (await store.exchange(request_of("a", slots=ends(3)))).unknown == 3
            assert (await store.exchange(request_of("b"))).used == 3

    asyncio.run(exchange())
    assert path.is_file()


def test_slots_of_unused_accounts_are_deleted(path: Path) -> None:
    exchange_all(path, request_of("a", wants=1), clock=lambda: 1000.0)
    execute(path, "UPDATE slots SET account = 'old'")
    exchange_all(path, request_of("a", wants=1), clock=lambda: 3000.0)
    assert execute(path, "SELECT account FROM slots") == [("account",)]


def test_clock_that_started_again_with_the_machine_keeps_the_slots(path: Path) -> None:
    report = request_of("a", slots=ends(9))
    exchange_all(path, report, clock=lambda: 86_400.0)
    assert exchange_all(path, request_of("b"), clock=lambda: 5.0)[0].used == 9
    assert exchange_all(path, request_of("b"), clock=lambda: 66.0)[0].used == 0


def test_slots_of_killed_clients_do_not_outlive_the_restart_of_the_machine(path: Path) -> None:
    exchange_all(path, request_of("a", wants=9), clock=lambda: 86_400.0)
    assert exchange_all(path, request_of("b"), clock=lambda: 5.0)[0].used == 9
    assert exchange_all(path, request_of("b"), clock=lambda: 71.0)[0].used == 0


def test_text_file_is_an_error_and_is_not_changed(path: Path) -> None:
    content = b"this is no database" * 100
    path.write_bytes(content)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        exchange_all(path, request_of("a"))
    assert path.read_bytes() == content


def test_other_database_is_an_error_and_is_not_changed(path: Path) -> None:
    execute(path, "CREATE TABLE notes (text)")
    content = path.read_bytes()
    with pytest.raises(sqlite3.DatabaseError, match="is not a rate budget of this version"):
        exchange_all(path, request_of("a"))
    assert path.read_bytes() == content


def test_file_of_an_older_layout_is_an_error_that_names_the_next_step(path: Path) -> None:
    execute(path, f"PRAGMA application_id = {sqlite_store.APPLICATION_ID}")
    execute(path, "PRAGMA user_version = 1")
    execute(path, "CREATE TABLE accounts (account TEXT PRIMARY KEY, used_at INTEGER, state BLOB)")
    content = path.read_bytes()
    with pytest.raises(sqlite3.DatabaseError, match="delete it or choose another path"):
        exchange_all(path, request_of("a"))
    assert path.read_bytes() == content


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        exchange_all(tmp_path / "missing" / "budget.db", request_of("a"))


def test_closing_without_an_exchange_creates_no_file(path: Path) -> None:
    exchange_all(path)
    assert not path.exists()


def budget_threads() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == "neonctl-async-budget"}


async def test_cancelled_closing_ends_the_thread(path: Path) -> None:
    others = budget_threads()
    store = SqliteStore(path, "account")
    await store.exchange(request_of("a"))
    closing = asyncio.create_task(store.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    assert closing.cancelled()
    await until(lambda: budget_threads() <= others)


async def test_client_closed_in_a_cancelled_scope_ends_its_thread(path: Path) -> None:
    others = budget_threads()
    budget = RateBudget.shared(f"sqlite:///{path}")
    async with MisbehavingServer(lambda _: http_response(content={})) as server:
        with anyio.CancelScope() as scope:
            async with NeonClient(API_KEY, base_url=server.base_url, budget=budget) as neon:
                await neon.request("GET", "/regions")
                assert len(budget_threads() - others) == 1
                scope.cancel()
                await anyio.sleep_forever()
    await until(lambda: budget_threads() <= others)


async def test_full_disk_replaces_the_store_by_a_part_of_the_limits(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connect_to_full_disk(path: Path, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_to_full_disk)
    client = SharingClient(SqliteStore(path, "account"), Neon())
    for _ in range(20):
        await client.request(seconds=0)
    assert client.account.limit == 175
    assert "database or disk is full" in caplog.text
    assert len(caplog.records) == 1
    await client.aclose()


async def test_locked_file_is_replaced_by_a_part_of_the_limits(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # SQLite gives up long before the client does, even on a busy machine.
    monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.05)
    async with opened(path) as store:
        await store.exchange(request_of("a"))
    connect = partial(sqlite3.connect, isolation_level=None, check_same_thread=False)
    blocker = await asyncio.to_thread(connect, path)
    await asyncio.to_thread(blocker.execute, "BEGIN IMMEDIATE")
    client = SharingClient(SqliteStore(path, "account"), Neon())
    await client.request()
    assert client.account.limit == 175
    assert "database is locked" in caplog.text
    await client.aclose()
    await asyncio.to_thread(blocker.close)


async def test_hanging_file_system_blocks_neither_requests_nor_closing(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    is_over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang(*_arguments: object, **_options: object) -> sqlite3.Connection:
        asyncio.run_coroutine_threadsafe(is_over.wait(), loop).result()
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(sqlite3, "connect", hang)
    client = SharingClient(SqliteStore(path, "account"), Neon())
    await client.request()
    assert client.account.limit == 175
    assert "TimeoutError" in caplog.text
    await client.aclose()
    is_over.set()


async def test_requests_of_a_client_are_in_the_file(path: Path) -> None:
    neon = Neon()
    client = SharingClient(SqliteStore(path, "account"), neon)
    for _ in range(60):
        await client.request(seconds=0.001)
    await client.aclose()
    assert neon.rejected == 0
    async with opened(path) as store:
        assert (await store.exchange(request_of("b"))).used == 60


@pytest.mark.process
@pytest.mark.scale
def test_processes_that_are_killed_leave_the_others_within_the_limits(path: Path) -> None:
    check_limits_through_kills(str(path), path.with_name("requests.txt"))


FORKED = """
import asyncio, os, sys
from pathlib import Path
from neonctl_async import RateBudget
from neonctl_async.transport.budget import Budget
from neonctl_async.transport.shared.account import SharedAccount
from neonctl_async.transport.shared.sqlite_store import SqliteStore

limits = RateBudget(per_minute=20)
account = SharedAccount(
    limits, SqliteStore(Path(sys.argv[1]), "account"), longest_request=5, fallback_parts=4
)
budget = Budget(limits, 100, account)

async def send(number):
    async def work():
        while True:
            slot = await budget.acquire("/a")
            os.write(1, b".")
            slot.release()
    try:
        async with asyncio.timeout(3):
            await work()
    except TimeoutError:
        pass

children = []
for number in range(4):
    if not (child := os.fork()):
        asyncio.run(send(number))
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_processes_that_fork_with_a_client_keep_to_its_limits(path: Path) -> None:
    command = [sys.executable, "-c", FORKED, str(path)]
    sent = subprocess.run(command, check=True, capture_output=True).stdout
    assert 15 <= len(sent) <= 20
