"""Updates that wait for the next write."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from neonctl_local.storage.transactions import LaterUpdate, LaterUpdates

KEY = ("rows", 1)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, at INTEGER)")
        connection.execute("INSERT INTO rows VALUES (1, NULL)")
        yield connection


def update(at: int, before: int | None = None) -> LaterUpdate:
    return LaterUpdate(at, {"at": before}, {"at": at})


def stored(connection: sqlite3.Connection) -> object:
    (found,) = connection.execute("SELECT at FROM rows").fetchone()
    return found


def test_latest_update_is_stored_once(connection: sqlite3.Connection) -> None:
    later = LaterUpdates()
    later.add({KEY: update(20)})
    later.add({KEY: update(10)})
    later.forget(later.store(connection))
    assert stored(connection) == 20
    assert not later


def test_row_that_changed_before_keeps_its_values(connection: sqlite3.Connection) -> None:
    later = LaterUpdates()
    later.add({KEY: update(20)})
    connection.execute("UPDATE rows SET at = 15")
    later.forget(later.store(connection))
    assert stored(connection) == 15


def test_update_that_is_added_while_another_is_stored_follows_it(
    connection: sqlite3.Connection,
) -> None:
    later = LaterUpdates()
    later.add({KEY: update(20)})
    batch = later.store(connection)
    later.add({KEY: update(30)})
    later.forget(batch)
    assert later
    later.forget(later.store(connection))
    assert stored(connection) == 30


def test_read_with_an_older_snapshot_keeps_the_updates(
    connection: sqlite3.Connection,
) -> None:
    later = LaterUpdates()
    later.add({KEY: update(20)})
    noted = later.noted
    later.forget(later.store(connection))
    assert later.copy(noted) == {KEY: update(20)}
    assert later.copy(later.noted) == {}


def test_cleared_updates_are_not_stored(connection: sqlite3.Connection) -> None:
    later = LaterUpdates()
    later.add({KEY: update(20)})
    later.clear()
    assert later.store(connection) == {}
    assert stored(connection) is None
