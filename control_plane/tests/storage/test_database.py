"""Reads beside writes, and updates that reads leave to the next write."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from neonctl_local import Durations, ManualClock
from neonctl_local.engine import accounts, api_keys
from neonctl_local.settings import Rules
from neonctl_local.storage import data_files
from neonctl_local.storage.database import Database
from neonctl_local.storage.tables import ApiKey, User
from neonctl_local.storage.transactions import Transaction

RULES = Rules(durations=Durations())
IN_FILE_OR_MEMORY = pytest.mark.parametrize("in_file", [True, False], ids=["file", "memory"])


@asynccontextmanager
async def opened(path: Path | None, clock: ManualClock | None = None) -> AsyncGenerator[Database]:
    """Open a database, and close it."""
    database = Database(path, clock or ManualClock(), RULES)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


def names(tx: Transaction) -> list[str]:
    """Return the names of all users."""
    return [user.name for user in tx.select(User, "ORDER BY name")]


def wait_for(tx: Transaction, event: threading.Event) -> None:
    """Occupy the transaction until an event is set."""
    del tx
    assert event.wait(10)


def stored_uses(path: Path) -> list[object]:
    """Return the times of the last uses of keys in a file."""
    with closing(sqlite3.connect(path)) as connection:
        return [at for (at,) in connection.execute("SELECT last_used_at FROM api_keys")]


@IN_FILE_OR_MEMORY
async def test_read_sees_every_write_that_was_finished_before(
    tmp_path: Path, *, in_file: bool
) -> None:
    async with opened(tmp_path / "data.db" if in_file else None) as database:
        for number in range(20):
            await database.run(accounts.create_user, f"{number:02}", f"{number}@example.com")
            assert len(await database.read(names)) == number + 1
            assert (await database.read_list(1, names))[-1] == f"{number:02}"


async def test_read_does_not_wait_for_a_write(tmp_path: Path) -> None:
    async with opened(tmp_path / "data.db") as database:
        event = threading.Event()
        write = asyncio.create_task(database.run(wait_for, event))
        await asyncio.sleep(0)
        assert await database.read(names) == []
        assert await database.read_list(1, names) == []
        assert not write.done()
        event.set()
        await write


async def test_read_does_not_wait_for_a_list(tmp_path: Path) -> None:
    async with opened(tmp_path / "data.db") as database:
        event = threading.Event()
        lists = [
            asyncio.create_task(database.read_list(number, lambda tx: wait_for(tx, event)))
            for number in range(5)
        ]
        await asyncio.sleep(0)
        assert await database.read(names) == []
        await database.run(accounts.create_user, "a", "a@example.com")
        assert await database.read(names) == ["a"]
        event.set()
        await asyncio.gather(*lists)


async def test_read_keeps_its_snapshot_while_a_write_is_committed(tmp_path: Path) -> None:
    def names_twice(tx: Transaction) -> tuple[list[str], list[str]]:
        before = names(tx)
        started.set()
        assert written.wait(10)
        return before, names(tx)

    started, written = threading.Event(), threading.Event()
    async with opened(tmp_path / "data.db") as database:
        read = asyncio.create_task(database.read(names_twice))
        await asyncio.to_thread(started.wait, 10)
        await database.run(accounts.create_user, "a", "a@example.com")
        written.set()
        assert await read == ([], [])


@IN_FILE_OR_MEMORY
async def test_read_cannot_write(tmp_path: Path, *, in_file: bool) -> None:
    async with opened(tmp_path / "data.db" if in_file else None) as database:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            await database.read(accounts.create_user, "a", "a@example.com")
        await database.run(accounts.create_user, "a", "a@example.com")


@IN_FILE_OR_MEMORY
async def test_reads_see_restored_data(tmp_path: Path, *, in_file: bool) -> None:
    async with opened(tmp_path / "data.db" if in_file else None) as database:
        await database.run(accounts.create_user, "a", "a@example.com")
        assert await database.read(names) == ["a"]
        await database.save()
        for _ in range(3):
            await database.run(accounts.create_user, "b", "b@example.com")
            assert await database.read(names) == ["a", "b"]
            assert await database.restore()
            assert await database.read(names) == ["a"]
            assert await database.read_list(1, names) == ["a"]


async def test_data_is_restored_while_a_read_runs(tmp_path: Path) -> None:
    async with opened(tmp_path / "data.db") as database:
        await database.save()
        await database.run(accounts.create_user, "b", "b@example.com")
        event = threading.Event()
        read = asyncio.create_task(database.read(wait_for, event))
        await asyncio.sleep(0)
        assert await database.restore()
        assert await database.read(names) == []
        event.set()
        await read


def test_relative_path_is_that_of_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use_elsewhere() -> list[str]:
        async with opened(Path("data.db")) as database:
            monkeypatch.chdir(other)
            await database.run(accounts.create_user, "a", "a@example.com")
            assert await database.read(names) == ["a"]
            return await database.read_list(1, names)

    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(tmp_path)
    assert asyncio.run(use_elsewhere()) == ["a"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "other",
        "data.db",
        "data.db.reserve",
    }
    assert list(other.iterdir()) == []


def test_database_in_memory_can_be_used_in_another_event_loop() -> None:
    async def read_two_lists() -> list[list[str]]:
        await database.open()
        lists = await asyncio.gather(*(database.read_list(1, names) for _ in range(2)))
        await database.close()
        return lists

    database = Database(None, ManualClock(), RULES)
    for _ in range(2):
        assert asyncio.run(read_two_lists()) == [[], []]


async def test_cancelled_close_can_be_repeated(tmp_path: Path) -> None:
    event = threading.Event()
    async with opened(tmp_path / "data.db") as database:
        read = asyncio.create_task(database.read(wait_for, event))
        await database.read_list(1, names)
        close = asyncio.create_task(database.close())
        await asyncio.sleep(0)
        close.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await close
        event.set()
        await read
    threads = {thread.name for thread in threading.enumerate()}
    assert cancelled.tb is not None, "keeps alive what close() has left open"
    assert not [name for name in threads if name.startswith("neonctl-async-local")]


async def test_use_of_a_key_is_stored_soon_without_another_request(tmp_path: Path) -> None:
    path, clock = tmp_path / "data.db", ManualClock()
    async with opened(path, clock) as database:
        account = await database.run(accounts.ensure_first_account)
        await database.read(api_keys.authenticate, f"Bearer {account.api_key}", "127.0.0.1")
        assert await _until_stored(path)
        clock.advance(60)
        before = await asyncio.to_thread(stored_uses, path)
        await database.read(api_keys.authenticate, f"Bearer {account.api_key}", "127.0.0.1")
        assert await asyncio.to_thread(stored_uses, path) == before
    assert await asyncio.to_thread(stored_uses, path) > before, "the file was closed"


async def test_use_is_stored_with_the_next_write_and_not_after_a_restore(tmp_path: Path) -> None:
    def used(tx: Transaction) -> list[bool]:
        return [key.last_used_at is not None for key in tx.select(ApiKey, "ORDER BY id")]

    async with opened(tmp_path / "data.db") as database:
        account = await database.run(accounts.ensure_first_account)
        await database.save()
        for _ in range(2):
            await database.read(api_keys.authenticate, f"Bearer {account.api_key}", "127.0.0.1")
            await database.run(accounts.create_user, "b", "b@example.com")
            assert await database.read(used) == [True]
            await database.read(api_keys.authenticate, f"Bearer {account.api_key}", "127.0.0.2")
            await database.restore()
            await database.run(accounts.create_user, "c", "c@example.com")
            assert await database.read(used) == [False]
            await database.restore()


async def test_write_that_fails_keeps_the_uses_for_the_next_one(tmp_path: Path) -> None:
    def fail(tx: Transaction) -> None:
        del tx
        raise ValueError("failed on purpose")

    path = tmp_path / "data.db"
    async with opened(path) as database:
        account = await database.run(accounts.ensure_first_account)
        with pytest.raises(ValueError, match="on purpose"):
            await database.run(fail)
        await database.read(api_keys.authenticate, f"Bearer {account.api_key}", "127.0.0.1")
        with pytest.raises(ValueError, match="on purpose"):
            await database.run(fail)
    assert None not in await asyncio.to_thread(stored_uses, path)


async def _until_stored(path: Path) -> bool:
    for _ in range(500):
        if None not in await asyncio.to_thread(stored_uses, path):
            return True
        await asyncio.sleep(0.01)
    return False


async def test_waiting_lists_with_the_same_key_share_a_result_that_is_read_later(
    tmp_path: Path,
) -> None:
    def names_counted(tx: Transaction) -> list[str]:
        calls.append(1)
        return names(tx)

    calls: list[int] = []
    async with opened(tmp_path / "data.db") as database:
        event = threading.Event()
        other = asyncio.create_task(database.read_list(0, lambda tx: wait_for(tx, event)))
        await asyncio.sleep(0)
        lists = [asyncio.create_task(database.read_list(1, names_counted)) for _ in range(9)]
        await asyncio.sleep(0)
        await database.run(accounts.create_user, "a", "a@example.com")
        lists.append(asyncio.create_task(database.read_list(1, names_counted)))
        await asyncio.sleep(0)
        lists.pop(0).cancel()
        event.set()
        assert await asyncio.gather(*lists) == [["a"]] * 9
        assert calls == [1]
        await other


async def test_list_that_has_started_is_not_shared(tmp_path: Path) -> None:
    def wait_with_names(tx: Transaction) -> list[str]:
        found = names(tx)
        started.set()
        assert written.wait(10)
        return found

    started, written = threading.Event(), threading.Event()
    async with opened(tmp_path / "data.db") as database:
        first = asyncio.create_task(database.read_list(1, wait_with_names))
        await asyncio.to_thread(started.wait, 10)
        await database.run(accounts.create_user, "a", "a@example.com")
        second = asyncio.create_task(database.read_list(1, wait_with_names))
        await asyncio.sleep(0)
        written.set()
        assert (await first, await second) == ([], ["a"])


async def test_log_stays_short_while_reads_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_always(database: Database) -> None:
        while not written.is_set():
            await database.read(names)

    monkeypatch.setattr(data_files, "_LONG_LOG", 1 << 16)
    # A reader that a busy machine has stopped in the middle must not end the wait for it.
    monkeypatch.setattr(data_files, "_LOG_MILLISECONDS", 10_000)
    path, written = tmp_path / "data.db", asyncio.Event()
    log = path.with_name("data.db-wal")
    async with opened(path) as database, asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(read_always(database))
        for number in range(400):
            await database.run(accounts.create_user, "a", f"{number}@example.com")
        size = (await asyncio.to_thread(log.stat)).st_size
        written.set()
    # 100 writes between two checks fill 1.2 MB, and 400 writes would fill 4.8 MB.
    assert size < 2 << 20


async def test_reads_in_memory_run_between_two_lists() -> None:
    async def note(name: str, read: Coroutine[None, None, object]) -> None:
        await read
        order.append(name)

    order: list[str] = []
    async with opened(None) as database, asyncio.TaskGroup() as tasks:
        for number in range(5):
            tasks.create_task(note("list", database.read_list(number, names)))
        await asyncio.sleep(0)
        tasks.create_task(note("read", database.read(names)))
    assert order.index("read") <= 1


@IN_FILE_OR_MEMORY
async def test_each_change_is_reported(tmp_path: Path, *, in_file: bool) -> None:
    async with opened(tmp_path / "data.db" if in_file else None) as database:
        for number in range(3):
            changed = database.changed
            assert not changed.is_set()
            await database.run(accounts.create_user, "a", f"{number}@example.com")
            await asyncio.wait_for(changed.wait(), 5)
        await database.save()
        changed = database.changed
        await database.restore()
        await asyncio.wait_for(changed.wait(), 5)


@IN_FILE_OR_MEMORY
async def test_transaction_without_a_change_is_not_reported(
    tmp_path: Path, *, in_file: bool
) -> None:
    clock = ManualClock()
    async with opened(tmp_path / "data.db" if in_file else None, clock) as database:
        account = await database.run(accounts.ensure_first_account)
        changed = database.changed
        await database.run(names)
        key = f"Bearer {account.api_key}"
        clock.advance(5)
        await database.read(api_keys.authenticate, key, "127.0.0.1")
        await database.run(names)  # stores the use of the key too
        await asyncio.sleep(0.05)
        assert not changed.is_set()


async def test_part_that_was_committed_before_an_error_is_reported() -> None:
    def create_and_fail(tx: Transaction) -> None:
        accounts.create_user(tx, "a", "a@example.com")
        tx.commit()
        raise ValueError("planned")

    async with opened(None) as database:
        changed = database.changed
        with pytest.raises(ValueError, match="planned"):
            await database.run(create_and_fail)
        await asyncio.wait_for(changed.wait(), 5)
