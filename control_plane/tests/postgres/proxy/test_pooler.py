"""The pooler, beside PgBouncer in transaction mode where its version has the feature."""

import asyncio
import os
import re
import select
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, nullcontext
from typing import Any, Final, NamedTuple

import asyncpg
import psycopg
import pytest
from sqlalchemy import URL, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from control_plane.tests.postgres.proxy import pgbouncer
from control_plane.tests.postgres.proxy.conftest import Computes
from control_plane.tests.postgres.proxy.conversations import (
    EXECUTE,
    SYNC,
    bind,
    data,
    parse,
    query,
)
from control_plane.tests.postgres.proxy.model import COPY_IN, TABLE
from control_plane.tests.postgres.proxy.server import (
    DATABASE,
    PASSWORD,
    ROLE,
    Server,
    running_server,
)
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.proxy.pooler import pool, pooler
from neonctl_local.postgres.template import Template
from tests.support.until import until

pytestmark = pytest.mark.postgres

Connection = psycopg.AsyncConnection[tuple[Any, ...]]

LOST: Final = {
    "SET": ("SET work_mem = '7MB'", "SHOW work_mem"),
    "set_config": ("SELECT set_config('search_path', 'x', false)", "SHOW search_path"),
    "role": ("SET ROLE pg_monitor", "SELECT current_user::text"),
    "temporary table": ("CREATE TEMP TABLE t (x int)", "SELECT to_regclass('t')::text"),
    "lock": ("SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock(1)"),
    "PREPARE": ("PREPARE p AS SELECT 1", "SELECT count(*) FROM pg_prepared_statements"),
    "DO": (
        "DO $$BEGIN EXECUTE 'PREPARE p AS SELECT 1'; END$$",
        "SELECT count(*) FROM pg_prepared_statements WHERE from_sql",
    ),
    "cursor": ("DECLARE held CURSOR WITH HOLD FOR SELECT 1", "SELECT count(*) FROM pg_cursors"),
    "LISTEN": ("LISTEN news", "SELECT count(*) FROM pg_listening_channels()"),
}
"""Statements, and a query of the state that they leave in a session."""
KEPT: Final = {"timezone": "Asia/Tokyo", "application_name": "it's me", "datestyle": "SQL, DMY"}

TRAPS: Final = (
    "current_setting(text) RETURNS text",
    "multiplied(int, int) RETURNS int",
    "pg_advisory_unlock_all() RETURNS text",
)
"""What the owner of a database may replace."""


class Pooled(NamedTuple):
    """A pooler, and the version of PgBouncer that it is like."""

    login: dict[str, Any]
    version: tuple[int, int]

    async def connect(self, **others: Any) -> Connection:
        arguments = self.login | others
        return await psycopg.AsyncConnection.connect(**arguments, autocommit=True)

    async def connect_asyncpg(self, **others: Any) -> Any:
        login = {"database" if name == "dbname" else name: self.login[name] for name in self.login}
        settings = others.pop("server_settings", {})
        if options := login.pop("options", None):
            settings["options"] = options
        return await asyncpg.connect(**login, **others, ssl=False, server_settings=settings)


@pytest.fixture
def ours(computes: Computes) -> Pooled:
    return Pooled(computes.login("ep-frost-pooler"), (9, 9))


@pytest.fixture
def own_server(
    installation: Installation, template: Template, account: ServerAccount | None
) -> Iterator[Server]:
    with running_server(installation, template, account) as server:
        yield server


@pytest.fixture(scope="module")
def original(server: Server, account: ServerAccount | None) -> Iterator[Pooled]:
    if pgbouncer.PROGRAM is None:
        pytest.skip("PgBouncer is not installed")
    with pgbouncer.running_pgbouncer(server, account) as port:
        login = {"host": "127.0.0.1", "port": port, "user": ROLE, "dbname": DATABASE}
        yield Pooled(login | {"password": PASSWORD}, pgbouncer.version())


IN_TEST = pytest.mark.process
"""Marks the tests that ``make test`` runs, too."""


@pytest.fixture(params=[pytest.param("ours", marks=IN_TEST), "original"])
def pooled(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


async def value(connection: Connection, query: str, *arguments: object) -> Any:
    cursor = await connection.execute(query.encode(), arguments or None)
    row = await cursor.fetchone() if cursor.description else None
    return row[0] if row else None


@pytest.mark.fact("pooler-2")
async def test_state_of_a_session_is_lost_after_each_transaction(pooled: Pooled) -> None:
    async with await pooled.connect() as connection:
        for name, (statement, query) in LOST.items():
            initial = await value(connection, query)
            for transaction in (nullcontext(), connection.transaction()):
                async with transaction:
                    await connection.execute(statement.encode())
                assert await value(connection, query) == initial, name


async def test_statement_that_a_failed_block_prepared_is_lost(pooled: Pooled) -> None:
    async with await pooled.connect() as connection:
        with pytest.raises(psycopg.errors.RaiseException):
            await connection.execute(
                "DO $$BEGIN EXECUTE 'PREPARE p AS SELECT 1'; RAISE 'no'; END$$"
            )
        assert await value(connection, "SELECT count(*) FROM pg_prepared_statements") == 0


async def test_state_of_a_session_lasts_for_a_transaction(pooled: Pooled) -> None:
    async with await pooled.connect() as connection:
        for name, (statement, query) in LOST.items():
            initial = await value(connection, query)
            async with connection.transaction():
                await connection.execute(statement.encode())
                changed = await value(connection, query) != initial
            assert changed or name == "LISTEN"  # starts at the end of the transaction


async def test_tracked_settings_follow_the_client(pooled: Pooled) -> None:
    async with await pooled.connect() as other, await pooled.connect() as connection:
        for name, setting in KEPT.items():
            quoted = setting.replace("'", "''")
            await connection.execute(f"SET {name} = '{quoted}'".encode())
        for name, setting in KEPT.items():
            assert await value(other, f"SHOW {name}") != setting
            assert await value(connection, f"SHOW {name}") == setting
        assert connection.info.parameter_status("TimeZone") == KEPT["timezone"]


@pytest.mark.fact("pooler-3")
async def test_statement_that_the_driver_prepared_is_kept(pooled: Pooled) -> None:
    if pooled.version < (1, 21):
        pytest.skip("PgBouncer keeps prepared statements since version 1.21")
    async with await pooled.connect() as one, await pooled.connect() as other:
        for number in range(3):
            for connection in (one, other):
                cursor = await connection.execute("SELECT %s + 1", [number], prepare=True)
                assert await cursor.fetchone() == (number + 1,)
            async with one.transaction():  # the other client has another server meanwhile
                assert await value(one, "SELECT 1 + %s", 1) == 2
                cursor = await other.execute("SELECT %s + 1", [number], prepare=True)
                assert await cursor.fetchone() == (number + 1,)


@pytest.mark.fact("pooler-1")
@pytest.mark.parametrize(
    ("login", "since", "message"),
    [
        ({"options": "-c search_path=a"}, (1, 20), "in options: search_path"),
        ({"options": "--lock_timeout=1"}, (1, 21), "in options: lock_timeout"),
        ({"options": "-c geqo"}, (1, 21), "only '-c config=val' and '--config=val' are allowed"),
        ({"replication": "database"}, (0, 0), "startup parameter: replication"),
    ],
)
async def test_other_startup_parameters_are_refused(
    pooled: Pooled, login: dict[str, str], since: tuple[int, int], message: str
) -> None:
    if pooled.version < since:
        pytest.skip(f"PgBouncer says this since version {since}")
    if "options" in login:
        login = {"options": f"{pooled.login.get('options', '')} {login['options']}"}
    with pytest.raises(psycopg.OperationalError, match=f"FATAL:  unsupported .*{message}"):
        await pooled.connect(**login)


@pytest.mark.parametrize(("size", "errors"), [(100, 1), (0, 0)], ids=["cached", "uncached"])
async def test_statement_fails_once_when_its_columns_have_changed(
    computes: Computes, size: int, errors: int
) -> None:
    url = URL.create("postgresql+asyncpg", ROLE, PASSWORD, "127.0.0.1", computes.port, DATABASE)
    caches = dict.fromkeys(("statement_cache_size", "prepared_statement_cache_size"), size)
    settings = {"options": "endpoint=ep-frost-pooler"}
    arguments = {"ssl": False, "server_settings": settings, **caches}
    engine = create_async_engine(url, connect_args=arguments)
    found: list[int] = []
    failed = 0
    async with await psycopg.AsyncConnection.connect(**computes.login(), autocommit=True) as direct:
        await direct.execute("CREATE TABLE changed AS SELECT 1 AS one")
        for number in range(6):
            try:
                async with engine.connect() as pooled:
                    rows = await pooled.execute(text("SELECT * FROM changed"))
                    found.append(len(rows.one()))
            except DBAPIError:
                failed += 1
            if number == 2:
                await direct.execute("ALTER TABLE changed ADD COLUMN two int")
        await direct.execute("DROP TABLE changed")
    await engine.dispose()
    assert (failed, found) == (errors, [1] * 3 + [2] * (3 - errors))


async def test_permitted_startup_parameters_have_an_effect_or_are_ignored(ours: Pooled) -> None:
    options = f"{ours.login['options']} -c TimeZone=Asia/Tokyo -c extra_float_digits=1"
    async with await ours.connect(options=options, application_name="shop") as connection:
        assert await value(connection, "SHOW timezone") == "Asia/Tokyo"
        assert await value(connection, "SHOW application_name") == "shop"
        assert await value(connection, "SHOW extra_float_digits") == "1"


async def test_settings_of_clients_may_differ_in_case_only(pooled: Pooled) -> None:
    async with (
        await pooled.connect(application_name="Shop") as first,
        await pooled.connect(application_name="shop") as second,  # the same server is free for it
    ):
        seen = [await value(one, "SHOW application_name") for one in (first, second, first)]
    assert seen == ["Shop", "shop", "Shop"]


async def test_invalid_setting_ends_the_connection(pooled: Pooled) -> None:
    connection = await pooled.connect_asyncpg(server_settings={"timezone": "Mars"})
    # Until 0.31, asyncpg reports the end of the connection instead of the error before it.
    is_old = asyncpg.__version__.startswith(("0.30.", "0.31."))
    message = "connection was closed|invalid server" if is_old else "invalid server parameter"
    with pytest.raises(asyncpg.PostgresError, match=message):
        await connection.execute("SELECT 1")
    connection.terminate()


@IN_TEST
async def test_login_and_reset_run_no_code_of_the_owner_of_the_database(
    computes: Computes, ours: Pooled
) -> None:
    async with await psycopg.AsyncConnection.connect(
        **computes.login(), autocommit=True
    ) as administrator:
        await administrator.execute("CREATE DATABASE trap")
        await administrator.execute("ALTER DATABASE trap SET search_path = public, pg_catalog")
    async with await psycopg.AsyncConnection.connect(
        **computes.login(dbname="trap"), autocommit=True
    ) as owner:
        await owner.execute("CREATE TABLE called (name text)")
        for name in TRAPS:
            result = "'10'::" + name.rpartition(" ")[2]
            body = f"INSERT INTO called VALUES (current_query()) RETURNING {result}"
            body = body.replace("'", "''")
            await owner.execute(f"CREATE FUNCTION {name} LANGUAGE sql AS '{body}'".encode())
        for operator in ("*", "/"):
            trap = f"CREATE OPERATOR {operator} (leftarg=int, rightarg=int, function=multiplied)"
            await owner.execute(trap.encode())
    async with await ours.connect(dbname="trap") as connection:
        for _ in range(2):
            assert await value(connection, "SELECT count(*) FROM called") == 0
    async with await ours.connect() as connection:
        await connection.execute("DROP DATABASE trap WITH (FORCE)")


@IN_TEST
async def test_many_clients_share_ninety_percent_of_the_connections(
    ours: Pooled, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(await ours.connect()) for _ in range(29)]
        results = await asyncio.gather(
            *(value(client, "SELECT %s::int", number) for number, client in enumerate(clients))
        )
        assert results == list(range(29))
        for client in clients[:27]:  # max_connections is 30
            await client.execute("BEGIN")
        with monkeypatch.context() as patch:
            patch.setattr(pool, "QUERY_WAIT_TIMEOUT", 0.1)
            with pytest.raises(psycopg.OperationalError, match="query_wait_timeout"):
                await clients[27].execute("SELECT 1")
        await clients[0].execute("COMMIT")
        assert await value(clients[28], "SELECT 1") == 1


async def test_failed_login_has_the_error_of_postgres(pooled: Pooled) -> None:
    with pytest.raises(psycopg.OperationalError, match='database "absent" does not exist'):
        async with await pooled.connect(dbname="absent") as connection:
            await connection.execute("SELECT 1")
    for wrong in ({"password": "wrong"}, {"user": "absent"}):
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            await pooled.connect(**wrong)


@pytest.mark.skipif(psycopg.pq.version() < 180000, reason="libpq has version 3.2 since 18")
async def test_newer_protocol_is_negotiated_down(ours: Pooled) -> None:
    async with await ours.connect(max_protocol_version="3.2") as connection:
        assert await value(connection, "SELECT 1") == 1


@IN_TEST
async def test_number_of_clients_is_limited(ours: Pooled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooler, "MAX_CLIENTS", 1)
    message = re.escape("FATAL:  no more connections allowed (max_client_conn)")
    async with await ours.connect():
        with pytest.raises(psycopg.OperationalError, match=message):
            await ours.connect()
    async with await ours.connect() as connection:
        assert await value(connection, "SELECT 1") == 1


async def test_query_of_the_right_client_is_cancelled(pooled: Pooled) -> None:
    async with await pooled.connect() as connection, await pooled.connect() as other:
        query = asyncio.create_task(connection.execute("SELECT pg_sleep(60)"))
        active = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'"
        await until(lambda: value(other, active))
        await other.cancel_safe()
        assert not query.done()
        await connection.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            await query
        assert await value(connection, "SELECT 1") == 1


@IN_TEST
async def test_cancel_request_starts_no_compute(ours: Pooled, computes: Computes) -> None:
    async with await ours.connect() as connection, await ours.connect() as other:
        query = asyncio.create_task(connection.execute("SELECT pg_sleep(61)"))
        active = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(61)'"
        await until(lambda: value(other, active))
        computes.requested.clear()
        await connection.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            await query
        assert computes.requested == []


async def test_much_data_and_errors_in_pipelines(pooled: Pooled) -> None:
    lines = b"".join(b"%d\n" % number for number in range(50_000))
    async with await pooled.connect() as connection:
        async with connection.transaction():
            await connection.execute("CREATE TEMPORARY TABLE copied (number int)")
            async with connection.cursor().copy("COPY copied FROM STDIN") as copy:
                await copy.write(lines)
            async with connection.cursor().copy("COPY copied TO STDOUT") as copy:
                assert b"".join([bytes(data) async for data in copy]) == lines
        assert len(await value(connection, "SELECT repeat('x', %s)", 20_000_000)) == 20_000_000
        with pytest.raises(psycopg.errors.DivisionByZero):
            async with connection.pipeline():
                await connection.execute("SELECT 1")
                await connection.execute("SELECT 1 / 0")
                await connection.execute("SELECT 2")
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            async with connection.transaction():
                await connection.execute("CREATE TEMPORARY TABLE copied (number int)")
                async with connection.cursor().copy("COPY copied FROM STDIN") as copy:
                    await copy.write(b"x\n")
        assert await value(connection, "SELECT 1") == 1


async def test_long_error_reaches_its_client(ours: Pooled) -> None:
    async with await ours.connect() as connection:
        for length in (10_000, 1_000_000):
            statement = f"DO $$ BEGIN RAISE EXCEPTION '%', repeat('x', {length}); END $$"
            with pytest.raises(psycopg.errors.RaiseException) as raised:
                await connection.execute(statement.encode())
            assert raised.value.diag.message_primary == "x" * length
            assert await value(connection, "SELECT 1") == 1


async def test_transaction_of_a_client_that_leaves_is_rolled_back(pooled: Pooled) -> None:
    async with await pooled.connect() as other:
        connection = await pooled.connect()
        await connection.execute("BEGIN")
        await connection.execute("SELECT pg_advisory_xact_lock(7)")
        await connection.close()
        free = "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory' AND objid = 7"
        await until(lambda: value(other, free))


@pytest.mark.parametrize("settings", [{}, {"statement_cache_size": 0}])
async def test_asyncpg_works_with_and_without_its_cache(
    ours: Pooled, settings: dict[str, int]
) -> None:
    connection = await ours.connect_asyncpg(**settings)
    try:
        for number in range(3):
            assert await connection.fetchval("SELECT $1::int + 1", number) == number + 1
        async with connection.transaction():
            rows = [row[0] async for row in connection.cursor("SELECT generate_series(1, 99)")]
        assert rows == list(range(1, 100))
    finally:
        await connection.close()


async def test_last_message_of_a_server_reaches_its_client(pooled: Pooled) -> None:
    async with await pooled.connect() as other, await pooled.connect() as connection:
        await connection.execute("BEGIN")
        process = await value(connection, "SELECT pg_backend_pid()")
        await other.execute(f"SELECT pg_terminate_backend({process})".encode())
        # PgBouncer drops the message if it first has to pass a query on to the dead server.
        await until(lambda: bool(select.select([connection], [], [], 0)[0]))
        with pytest.raises(psycopg.OperationalError, match="administrator command"):
            await connection.execute("SELECT 1")


@IN_TEST
async def test_client_that_ends_its_server_ends_no_other_one(ours: Pooled) -> None:
    async with await ours.connect() as idle, await ours.connect() as connection:
        with pytest.raises(psycopg.errors.AdminShutdown):
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        await asyncio.sleep(0.1)
        assert await value(idle, "SELECT 1") == 1


@IN_TEST
async def test_idle_clients_are_closed_when_the_server_stops(own_server: Server) -> None:
    async with Computes(own_server) as computes:
        ours = Pooled(computes.login("ep-frost-pooler"), (9, 9))
        async with await ours.connect() as idle:
            own_server.process.send_signal(signal.SIGINT)
            await until(lambda: bool(select.select([idle], [], [], 0)[0]))
            with pytest.raises(psycopg.OperationalError, match="due to administrator command"):
                await idle.execute("SELECT 1")


async def test_changed_table_breaks_prepared_statements(ours: Pooled) -> None:
    async with await ours.connect() as other, await ours.connect() as connection:
        await connection.execute("CREATE TABLE changed AS SELECT 1 AS one")
        try:
            await connection.execute("SELECT * FROM changed", prepare=True)
            await other.execute("ALTER TABLE changed ADD COLUMN two int")
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan must not"):
                await connection.execute("SELECT * FROM changed", prepare=True)
        finally:
            await connection.execute("DROP TABLE changed")


async def test_connections_to_a_compute_are_closed(computes: Computes, ours: Pooled) -> None:
    async with await ours.connect() as idle, await ours.connect() as busy:
        query = asyncio.create_task(busy.execute("SELECT pg_sleep(60)"))
        await until(lambda: computes.proxy.connections("ep-frost") == 2)
        await computes.proxy.close_connections("ep-frost")
        for result in await asyncio.gather(query, idle.execute("SELECT 1"), return_exceptions=True):
            assert isinstance(result, psycopg.OperationalError)


@IN_TEST
async def test_unused_pool_has_no_connections(computes: Computes, ours: Pooled) -> None:
    async with await ours.connect() as connection:
        process = await value(connection, "SELECT pg_backend_pid()")
    query = f"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = {process}"
    arguments = computes.login(autocommit=True)
    async with await psycopg.AsyncConnection.connect(**arguments) as direct:
        await until(lambda: value(direct, query))


@IN_TEST
@pytest.mark.parametrize(
    "frames",
    [
        [query("SELECT 1"), EXECUTE],
        [parse("", "NOPE"), query("SELECT 1")],
        [parse("", "SELECT 'one'"), bind(""), EXECUTE],
        [parse("", "SELECT 'one'"), bind(""), EXECUTE, query("NOPE")],
        [parse("", COPY_IN), bind(""), EXECUTE, SYNC],
        [query(COPY_IN), data("x"), data("1")[:-1]],
    ],
)
async def test_client_that_leaves_in_the_middle_hangs_no_other_one(
    ours: Pooled, frames: list[bytes]
) -> None:
    async with await ours.connect() as bystander:
        await bystander.execute(TABLE.encode())
        try:
            connection = await ours.connect()
            os.write(connection.fileno(), b"".join(frames))
            await asyncio.sleep(0.05)
            await connection.close()
            async with asyncio.timeout(5):
                assert await value(bystander, "SELECT 1") == 1
        finally:
            async with asyncio.timeout(5):
                await bystander.execute("DROP TABLE copied")
