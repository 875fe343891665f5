"""The proxy between drivers and a real server."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import psycopg
import pytest

from control_plane.tests.postgres.proxy.clients import (
    exchange,
    never_stopped,
    parse_refusal,
    startup,
)
from control_plane.tests.postgres.proxy.conftest import Computes
from control_plane.tests.postgres.proxy.conversations import split
from control_plane.tests.postgres.proxy.descriptors import few_descriptors, used_descriptors
from control_plane.tests.postgres.proxy.server import DATABASE, PASSWORD, ROLE, Server
from neonctl_local.postgres.client.session import WireSession, startup_message
from neonctl_local.postgres.proxy import proxy as proxy_module
from neonctl_local.postgres.proxy.connector import Route
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.proxy import UNCHECKED, Arrival, Proxy
from neonctl_local.postgres.proxy.streams import open_streams
from tests.support.until import until

pytestmark = pytest.mark.postgres

FROST = "ep-frost"


async def connect(computes: Computes, **login: Any) -> psycopg.AsyncConnection[tuple[Any, ...]]:
    arguments = computes.login(**login)
    return await psycopg.AsyncConnection.connect(**arguments, autocommit=True)


async def value(connection: psycopg.AsyncConnection[tuple[Any, ...]], query: str) -> Any:
    row = await (await connection.execute(query.encode())).fetchone()
    return row[0] if row else None


async def refused(computes: Computes, **login: Any) -> tuple[str | None, str]:
    """Return the SQLSTATE and the message of a login that fails."""
    arguments = computes.login(**login)
    packet = startup(
        user=arguments["user"], database=arguments["dbname"], options=arguments.get("options", "")
    )
    refusal = parse_refusal(await exchange(computes.port, packet))
    assert refusal.severity == "FATAL"
    with pytest.raises(psycopg.OperationalError) as caught:
        await connect(computes, **login)
    assert f"FATAL:  {refusal.message}" in str(caught.value)
    return refusal.code, refusal.message


async def test_query_runs_on_the_compute_of_the_options(computes: Computes) -> None:
    async with await connect(computes) as connection:
        assert await value(connection, "select 1") == 1
        assert computes.requested == [FROST]


async def test_asyncpg_connects_with_a_uri(computes: Computes) -> None:
    uri = f"postgresql://{ROLE}@127.0.0.1:{computes.port}/{DATABASE}?options=endpoint%3D{FROST}"
    connection = await asyncpg.connect(uri, password=PASSWORD, ssl=False)
    try:
        assert await connection.fetchval("select 1") == 1
    finally:
        await connection.close()


async def test_other_options_reach_the_server(computes: Computes) -> None:
    options = f"-c geqo=off endpoint={FROST} -c application_name=a\\ b"
    async with await connect(computes, options=options) as connection:
        assert await value(connection, "show geqo") == "off"
        assert await value(connection, "show application_name") == "a b"
    assert computes.requested == [FROST]


async def test_read_only_compute_refuses_writes(computes: Computes) -> None:
    async with await connect(computes, options="endpoint=ep-read") as connection:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await connection.execute("create table written (id int)")


@pytest.mark.fact("connections-5")
@pytest.mark.parametrize("separator", [";"])
@pytest.mark.parametrize("option", ["endpoint", "project"])
async def test_endpoint_in_the_password(computes: Computes, option: str, separator: str) -> None:
    password = f"{option}={FROST}{separator}{PASSWORD}"
    async with await connect(computes, options="", password=password) as connection:
        assert await value(connection, "select 1") == 1
    assert computes.requested == [FROST]


async def test_wrong_password_with_an_endpoint_is_refused_by_the_server(computes: Computes) -> None:
    for login in (
        {"password": "wrong"},
        {"password": f"endpoint={FROST};wrong", "options": ""},
        {"password": f"endpoint={FROST}-pooler;wrong", "options": ""},
    ):
        with pytest.raises(psycopg.OperationalError) as caught:
            await connect(computes, **login)
        assert f"FATAL:  password authentication failed for user '{ROLE}'" in str(caught.value)


async def test_pooled_endpoint_in_the_password(computes: Computes) -> None:
    password = f"endpoint={FROST}-pooler;{PASSWORD}"
    async with await connect(computes, options="", password=password) as connection:
        await connection.execute("set work_mem = '7MB'")
        assert await value(connection, "show work_mem") == "4MB"


async def test_proxy_without_a_pooler_connects_directly(server: Server) -> None:
    async with Computes(server, pooler=False) as computes:
        async with await connect(computes, options=f"endpoint={FROST}-pooler") as connection:
            await connection.execute("set work_mem = '7MB'")
            assert await value(connection, "show work_mem") == "7MB"


async def test_unknown_endpoint_is_refused(computes: Computes) -> None:
    expected = ("XX000", "The requested endpoint could not be found.")
    assert await refused(computes, options="endpoint=ep-gone") == expected


async def test_error_of_the_route_is_logged_and_reported(
    computes: Computes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_endpoint_id: str, _address: str) -> Route:
        raise RuntimeError("a bug")

    monkeypatch.setattr(computes.proxy, "_route", fail)
    expected = ("XX000", "the local control plane failed: see its log")
    assert await refused(computes) == expected
    assert "a bug" in caplog.text
    assert ROLE not in caplog.text


async def test_query_is_cancelled_on_its_server(computes: Computes) -> None:
    async with await connect(computes) as connection:
        query = asyncio.create_task(connection.execute("select pg_sleep(60)"))
        async with await connect(computes) as other:
            active = "select count(*) from pg_stat_activity where query ~ '^select pg_sleep'"
            await until(lambda: value(other, active))
        await connection.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            await query
        assert await value(connection, "select 1") == 1


@pytest.mark.parametrize("options", [f"endpoint={FROST}", ""])
async def test_logins_without_an_answer_use_few_connections_of_the_server(
    computes: Computes, options: str
) -> None:
    before = f"endpoint={FROST};" if not options else ""
    hello = startup(user=ROLE, database=DATABASE, options=f"endpoint={FROST}")
    async with AsyncExitStack() as stack:
        for _ in range(60):  # the server has 30 connections
            reader, writer = await asyncio.open_connection("127.0.0.1", computes.port)
            stack.callback(writer.close)
            writer.write(hello)
            assert await reader.readexactly(1) == b"R"
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            await connect(computes, options=options, password=f"{before}wrong")
        async with await connect(computes, options=options, password=before + PASSWORD) as one:
            clients = "select count(*) from pg_stat_activity where backend_type = 'client backend'"
            assert await value(one, clients) <= 1 + UNCHECKED
        session = await open_here(computes)
        session.abort()


@pytest.mark.parametrize("endpoint_id", [FROST, f"{FROST}-pooler"])
async def test_server_ignores_cancel_requests_until_it_has_read_the_query(
    computes: Computes, endpoint_id: str
) -> None:
    """The pooler does not repeat them, either."""
    options = f"endpoint={endpoint_id}"
    async with await connect(computes, options=options) as connection, connection.transaction():
        process_id = await value(connection, "select pg_backend_pid()")
        os.kill(process_id, signal.SIGSTOP)
        try:
            query = asyncio.create_task(value(connection, "select 1 from pg_sleep(0.1)"))
            await connection.cancel_safe()
        finally:
            os.kill(process_id, signal.SIGCONT)
        assert await query == 1


async def test_cancel_request_with_an_unknown_key_is_ignored(computes: Computes) -> None:
    packet = b"\0\0\0\x10\x04\xd2\x16\x2e" + bytes(8)
    assert await exchange(computes.port, packet) == b""


async def test_connections_are_counted_by_endpoint(computes: Computes) -> None:
    async with await connect(computes), await connect(computes, options="endpoint=ep-read"):
        assert computes.proxy.connections() == 2
        assert computes.proxy.connections(FROST) == 1
        assert computes.proxy.connections("ep-other") == 0
    await until(lambda: computes.proxy.connections() == 0)


async def test_connections_to_one_endpoint_are_closed(computes: Computes) -> None:
    async with await connect(computes, options="endpoint=ep-read") as other:
        connection = await connect(computes)
        await computes.proxy.close_connections(FROST)
        assert computes.proxy.connections(FROST) == 0
        with pytest.raises(psycopg.OperationalError):
            await connection.execute("select 1")
        assert await value(other, "select 1") == 1


async def wait_for_ever(_endpoint_id: str, _address: str) -> Route:
    """Find the route of a compute that never starts."""
    return await asyncio.Future()


async def test_waiting_client_is_counted_and_closed(
    computes: Computes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computes.proxy, "_route", wait_for_ever)
    connecting = asyncio.create_task(connect(computes))
    await until(lambda: computes.proxy.connections(FROST) == 1)
    await computes.proxy.close_connections(FROST)
    with pytest.raises(psycopg.OperationalError):
        await connecting


async def open_here(computes: Computes, endpoint_id: str = FROST) -> WireSession:
    """Log in as a client of the process of the proxy."""
    message = startup_message({"user": ROLE, "database": DATABASE})
    opened = await computes.proxy.open(
        message, Arrival("127.0.0.1", f"{endpoint_id}.localhost"), PASSWORD.encode()
    )
    session = WireSession(opened.reader, opened.writer)
    await session.log_in(PASSWORD, opened.secret)
    return session


@pytest.mark.parametrize("endpoint_id", [FROST, f"{FROST}-pooler"])
async def test_session_of_this_process_is_counted_and_closed(
    computes: Computes, endpoint_id: str
) -> None:
    session = await open_here(computes, endpoint_id)
    assert computes.proxy.connections(FROST) == 1
    await computes.proxy.close_connections(FROST)
    assert await session.reader.read() == b""
    assert computes.proxy.connections(FROST) == 0
    session.abort()


async def test_session_of_this_process_leaves_when_it_is_closed(computes: Computes) -> None:
    session = await open_here(computes)
    session.abort()
    await until(lambda: computes.proxy.connections(FROST) == 0)


async def test_client_of_this_process_that_waits_is_closed(
    computes: Computes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computes.proxy, "_route", wait_for_ever)
    opening = asyncio.create_task(open_here(computes))
    await until(lambda: computes.proxy.connections(FROST) == 1)
    await computes.proxy.close_connections(FROST)
    with pytest.raises(EOFError):
        await opening


async def test_client_of_this_process_is_closed_in_the_moment_it_is_connected(
    computes: Computes, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing: list[asyncio.Task[None]] = []

    async def open_and_close(sock: socket.socket, on_close: Callable[[], None]) -> Any:
        streams = await open_streams(sock, on_close)
        closing.append(asyncio.create_task(computes.proxy.close_connections(FROST)))
        await asyncio.sleep(0)  # the closing task now waits for the end of this connection
        return streams

    monkeypatch.setattr(proxy_module, "open_streams", open_and_close)
    with pytest.raises(EOFError):
        await open_here(computes)
    await closing[0]


async def test_client_of_this_process_may_be_closed_twice(
    computes: Computes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled, cleaned = asyncio.Event(), asyncio.Event()

    async def find(_endpoint_id: str, _address: str) -> Route:
        try:
            return await asyncio.Future()
        finally:
            cancelled.set()
            await cleaned.wait()

    monkeypatch.setattr(computes.proxy, "_route", find)
    opening = asyncio.create_task(open_here(computes))
    await until(lambda: computes.proxy.connections(FROST) == 1)
    first = asyncio.create_task(computes.proxy.close_connections(FROST))
    await cancelled.wait()
    second = asyncio.create_task(computes.proxy.close_connections(FROST))
    await asyncio.sleep(0)  # the second one now waits, too
    cleaned.set()
    await asyncio.gather(first, second)
    with pytest.raises(EOFError):
        await opening


async def test_client_of_this_process_is_refused_after_the_timeout(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Computes(server, handshake_timeout=0.05) as computes:
        monkeypatch.setattr(computes.proxy, "_route", wait_for_ever)
        with pytest.raises(ComputeRefusedError, match="Authentication timed out"):
            await open_here(computes)
        assert computes.proxy.connections() == 0


async def test_stopped_proxy_closes_every_connection(server: Server) -> None:
    async with Computes(server) as computes:
        connection = await connect(computes)
        here = await open_here(computes)
        reader, writer = await asyncio.open_connection("127.0.0.1", computes.port)
        await until(lambda: computes.proxy.connections() == 3)
    assert await reader.read() == b""
    writer.close()
    assert await here.reader.read() == b""
    with pytest.raises(psycopg.OperationalError):
        await connection.execute("select 1")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", computes.port)


async def test_proxy_that_was_not_started_can_be_stopped(server: Server) -> None:
    await Computes(server).proxy.stop()


async def test_port_in_use_is_an_error(computes: Computes) -> None:
    other = Proxy(computes.find, never_stopped, host="127.0.0.1", port=computes.port, tls=None)
    with pytest.raises(OSError, match="address already in use"):
        await other.start()
    await other.stop()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\0\0\0",
        startup(user=ROLE),
        startup(user=ROLE) + b"p",
        startup(user=ROLE, options=f"endpoint={FROST}"),
        startup(user=ROLE, options=f"endpoint={FROST}-pooler"),
    ],
)
async def test_slow_client_is_refused(server: Server, sent: bytes) -> None:
    async with Computes(server, handshake_timeout=0.05) as computes:
        *_, last = split(await exchange(computes.port, sent))
    assert parse_refusal(last) == ("FATAL", "57014", "Authentication timed out")


@pytest.fixture
def limited() -> Any:
    with few_descriptors():
        yield


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("free", [1, 2], ids=["none to accept", "none for the server"])
async def test_client_is_refused_without_file_descriptors(computes: Computes, free: int) -> None:
    expected = ("FATAL", "53300", "sorry, too many clients already")
    packet = startup(user=ROLE, options=f"endpoint={FROST}")
    for _ in range(2):
        client = socket.socket()
        client.settimeout(0)
        loop = asyncio.get_running_loop()
        with client, used_descriptors() as descriptors:
            for _ in range(free - 1):
                os.close(descriptors.pop())
            await loop.sock_connect(client, ("127.0.0.1", computes.port))
            await loop.sock_sendall(client, packet)
            response = await loop.sock_recv(client, 1000)
        assert parse_refusal(response) == expected
        await until(lambda: computes.proxy.connections() == 0)
    async with await connect(computes) as connection:
        assert await value(connection, "select 1") == 1


async def test_message_of_the_server_reaches_its_clients_at_the_end(computes: Computes) -> None:
    async with await connect(computes) as other, await connect(computes) as connection:
        await other.execute(f"select pg_terminate_backend({connection.info.backend_pid})".encode())
        with pytest.raises(psycopg.errors.AdminShutdown, match="administrator command"):
            await connection.execute("select 1")
