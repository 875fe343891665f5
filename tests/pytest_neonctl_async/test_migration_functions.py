"""Migrations are functions or coroutine functions, and both can be interrupted."""

import asyncio
import threading
from typing import NoReturn

import pytest

from neonctl_async import ConnectionUri
from pytest_neonctl_async.migrations import (
    check_migrations,
    migrate_database,
    no_migrations,
)

URI = ConnectionUri("postgresql://somebody:sesame@127.0.0.1/neondb")


def test_function_runs_in_the_thread_of_its_caller() -> None:
    calls: list[tuple[ConnectionUri, threading.Thread]] = []
    migrate_database(lambda uri: calls.append((uri, threading.current_thread())), URI)
    assert calls == [(URI, threading.current_thread())]


def test_coroutine_runs_in_another_thread_because_the_callers_may_have_an_event_loop() -> None:
    calls: list[tuple[ConnectionUri, threading.Thread]] = []

    async def migrate(uri: ConnectionUri) -> None:
        await asyncio.sleep(0)
        calls.append((uri, threading.current_thread()))

    migrate_database(migrate, URI)
    [(uri, thread)] = calls
    assert uri == URI
    assert thread is not threading.current_thread()


def test_error_of_a_coroutine_is_raised() -> None:
    async def migrate(uri: ConnectionUri) -> NoReturn:
        raise ValueError(uri.role)

    with pytest.raises(ValueError, match="somebody"):
        migrate_database(migrate, URI)


def test_default_of_the_fixture_is_no_migration() -> None:
    assert check_migrations(no_migrations, has_databases=False) is None
    assert check_migrations(print, has_databases=True) is print


def test_migrations_without_databases_are_refused() -> None:
    with pytest.raises(RuntimeError, match="neon_migrations needs databases: set neon_postgres"):
        check_migrations(print, has_databases=False)


@pytest.mark.parametrize("value", [None, "0001.sql"])
def test_value_that_is_not_a_function_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=f"returned {value!r}: expected a function") as caught:
        check_migrations(value, has_databases=True)
    assert 'for example "return migrate"' in str(caught.value)


def test_default_leaves_the_database_empty() -> None:
    migrate_database(no_migrations, URI)
