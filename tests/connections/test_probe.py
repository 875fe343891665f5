"""Attempts to connect to servers on real sockets."""

import asyncio
import errno
import socket
import ssl
from typing import Any, NoReturn

import anyio
import pytest
from anyio.abc import SocketStream

from neonctl_async.connections.addresses import Address, address_of_host
from neonctl_async.connections.probe import ATTEMPT_SECONDS, NotReadyError, Probe
from neonctl_async.testing import FakeClockLoop
from tests.connections.postgres_server import (
    SASL,
    STARTING_UP,
    Behaviour,
    PostgresServer,
    authenticating,
    close_at_once,
    refuse_tls,
    responding,
    sending,
    silent,
)
from tests.support.clock import now
from tests.support.until import until

TLS = {"uses_tls": True, "needs_tls": True}
OPTIONAL_TLS = {"uses_tls": True, "needs_tls": False}
PLAIN: dict[str, bool] = {}


async def failure(address: Address) -> NotReadyError:
    """Return the failure of an attempt."""
    with pytest.raises(NotReadyError) as caught:
        await Probe(address).run()
    return caught.value


def resolve_to(monkeypatch: pytest.MonkeyPatch, *ips: str) -> None:
    """Make every name lookup return these addresses. Without any, lookups fail."""

    def getaddrinfo(_host: str, port: int, **_options: object) -> list[tuple[Any, ...]]:
        if not ips:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(0, 0, 0, "", (ip, port)) for ip in ips]

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)


async def test_server_that_requests_authentication_is_ready() -> None:
    async with PostgresServer(authenticating) as server:
        parameters = {"user": "ada", "database": "shop", "options": "endpoint=ep-a-1"}
        await Probe(server.address(parameters=parameters)).run()
        await until(lambda: server.after_request == [b""])
    assert server.startups == [parameters]


async def test_server_name_is_sent_and_every_certificate_accepted(tls: ssl.SSLContext) -> None:
    async with PostgresServer(authenticating, tls=tls) as server:
        await Probe(server.address(host="localhost", **TLS)).run()
        await until(lambda: server.after_request == [b""])
    assert server.server_names == ["localhost"]


async def test_ip_address_is_connected_without_a_server_name(tls: ssl.SSLContext) -> None:
    async with PostgresServer(authenticating, tls=tls) as server:
        await Probe(server.address(**TLS)).run()
    assert server.server_names == [None]


async def test_response_may_arrive_in_parts(tls: ssl.SSLContext) -> None:
    async with PostgresServer(responding(SASL[:3], SASL[3:9], SASL[9:]), tls=tls) as server:
        await Probe(server.address(**TLS)).run()


async def test_optional_tls_may_be_refused() -> None:
    async with PostgresServer(refuse_tls) as server:
        await Probe(server.address(**OPTIONAL_TLS)).run()
    assert server.startups == [{"user": "ada"}]


async def test_closed_port_fails_at_tcp() -> None:
    async with PostgresServer(authenticating) as server:
        address = server.address()
    error = await failure(address)
    assert error.stage == "tcp"
    assert str(error) == f"no TCP connection to {address}: Connection refused"


@pytest.mark.parametrize(
    ("behaviour", "changes", "stage", "reason"),
    [
        (refuse_tls, TLS, "tls", "is not ready: it does not accept TLS connections"),
        (close_at_once, TLS, "tls", "closed the connection"),
        (sending(b"S"), TLS, "tls", None),
        (sending(b"S" + SASL), TLS, "startup", "but sent b'SR"),
        (close_at_once, PLAIN, "startup", "closed the connection"),
        (sending(b"HTTP/1.1 400 X\r\n"), TLS, "startup", "does not speak the Postgres protocol"),
        (sending(b"HTTP/1.1 400 X\r\n"), PLAIN, "startup", "does not speak the Postgres protocol"),
        (sending(STARTING_UP), TLS, "startup", "the database system is starting up"),
        (sending(STARTING_UP), PLAIN, "startup", "starting up (SQLSTATE 57P03)"),
    ],
)
@pytest.mark.virtual_time
async def test_stage_and_reason_of_a_failure(
    behaviour: Behaviour, changes: dict[str, bool], stage: str, reason: str | None
) -> None:
    async with PostgresServer(behaviour) as server:
        error = await failure(server.address(**changes))
        assert error.stage == stage
        assert (reason or f"no response to the TLS handshake from {server.address()}") in str(error)
        assert not error.is_final
        await until(lambda: not server.open_connections)


async def test_failed_handshake_is_a_failure_of_tls() -> None:
    async def fail_handshake(
        _server: PostgresServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readexactly(8)
        writer.write(b"S")
        await reader.read(4096)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()

    async with PostgresServer(fail_handshake) as server:
        error = await failure(server.address(**TLS))
        assert error.stage == "tls"
        assert str(error).startswith(f"the TLS handshake with {server.address()} failed: ")


async def test_connection_closed_during_the_handshake_is_a_failure_of_tls() -> None:
    async def close_during_handshake(
        _server: PostgresServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readexactly(8)
        writer.write(b"S")
        await reader.read(4096)

    async with PostgresServer(close_during_handshake) as server:
        error = await failure(server.address(**TLS))
        reason = f"the server at {server.address()} closed the connection"
        assert (error.stage, str(error)) == ("tls", reason)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("changes", "stage", "what"),
    [(TLS, "tls", "TLS handshake"), (PLAIN, "startup", "startup message")],
)
async def test_silent_server_is_given_up(changes: dict[str, bool], stage: str, what: str) -> None:
    async with PostgresServer(silent) as server:
        error = await failure(server.address(**changes))
        assert now() == pytest.approx(ATTEMPT_SECONDS, abs=0.1)
        assert error.stage == stage
        assert str(error) == f"no response to the {what} from {server.address()} within 10 s"


@pytest.mark.virtual_time
async def test_server_that_is_silent_after_the_handshake_fails_at_startup(
    tls: ssl.SSLContext,
) -> None:
    async with PostgresServer(responding(), tls=tls) as server:
        error = await failure(server.address(**TLS))
    assert error.stage == "startup"


async def test_emulated_host_is_final_and_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "127.0.0.1")
    error = await failure(address_of_host("ep-a-1.us-east-2.aws.neon.invalid"))
    assert (error.stage, error.is_final) == ("dns", True)
    assert "never resolves" in str(error)
    assert "--postgres" in str(error)


async def test_unknown_host_fails_at_dns(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch)
    error = await failure(address_of_host("ep-a-1.example.com"))
    assert (error.stage, error.is_final) == ("dns", False)
    assert str(error) == (
        "the host name ep-a-1.example.com has no address: Name or service not known"
    )


async def test_host_name_that_cannot_be_encoded_fails_at_dns() -> None:
    error = await failure(address_of_host(f"{'a' * 70}\N{LATIN SMALL LETTER O WITH DIAERESIS}.com"))
    assert error.stage == "dns"


async def test_next_address_is_tried_if_the_first_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "::1", "127.0.0.2", "127.0.0.1")  # the server listens on the last one
    async with PostgresServer(authenticating) as server:
        await Probe(server.address(host="ep-a-1.example.com")).run()
    assert server.connections == 1


async def test_first_failure_is_the_reason_if_all_addresses_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_to(monkeypatch, "127.0.0.2", "127.0.0.3")
    async with PostgresServer(authenticating) as server:
        address = server.address(host="ep-a-1.example.com")
        error = await failure(address)
    reason = f"no TCP connection to {address}: Connection refused"
    assert (error.stage, str(error)) == ("tcp", reason)


@pytest.mark.virtual_time
async def test_next_address_is_tried_while_the_first_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "127.0.0.2", "127.0.0.1")
    connect = asyncio.BaseEventLoop.create_connection
    cancelled: list[str] = []

    async def create_connection(
        loop: asyncio.BaseEventLoop, factory: Any, host: str, port: int, **options: Any
    ) -> Any:
        if host == "127.0.0.1":
            return await connect(loop, factory, host, port, **options)
        try:
            return await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(host)
            raise

    async with PostgresServer(authenticating) as server:
        monkeypatch.setattr(FakeClockLoop, "create_connection", create_connection)
        await Probe(server.address(host="ep-a-1.example.com")).run()
        assert now() == pytest.approx(0.25, abs=0.05)
    assert cancelled == ["127.0.0.2"]


async def test_of_two_connections_at_the_same_time_one_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_to(monkeypatch, "127.0.0.2", "127.0.0.1")
    second_started = asyncio.Event()
    connect = anyio.connect_tcp

    async def connect_tcp(ip: str, port: int) -> SocketStream:
        stream = await connect("127.0.0.1", port)
        if ip == "127.0.0.1":
            second_started.set()
        await second_started.wait()
        return stream

    monkeypatch.setattr("anyio.connect_tcp", connect_tcp)
    async with PostgresServer(authenticating) as server:
        await Probe(server.address(host="ep-a-1.example.com")).run()
        assert (server.connections, len(server.startups)) == (2, 1)
        await until(lambda: not server.open_connections)


async def test_connection_that_opens_during_a_cancellation_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect = anyio.connect_tcp

    async def connect_tcp(ip: str, port: int) -> SocketStream:
        stream = await connect(ip, port)
        task.cancel()
        return stream

    monkeypatch.setattr("anyio.connect_tcp", connect_tcp)
    async with PostgresServer(authenticating) as server:
        task = asyncio.create_task(Probe(server.address()).run())
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not server.open_connections)
    assert server.connections == 1


async def test_connections_that_open_while_a_scope_is_cancelled_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_to(monkeypatch, "127.0.0.2", "127.0.0.1")
    second_started = asyncio.Event()
    connect = anyio.connect_tcp

    async def connect_tcp(ip: str, port: int) -> SocketStream:
        stream = await connect("127.0.0.1", port)
        if ip == "127.0.0.1":
            second_started.set()
            scope.cancel()
        else:
            await second_started.wait()
        return stream

    monkeypatch.setattr("anyio.connect_tcp", connect_tcp)
    async with PostgresServer(authenticating) as server:
        with anyio.CancelScope() as scope:
            await Probe(server.address(host="ep-a-1.example.com")).run()
        assert (scope.cancelled_caught, server.connections) == (True, 2)
        await until(lambda: not server.open_connections)


async def test_exhausted_descriptors_are_a_failure_of_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect_tcp(_host: str, _port: int) -> NoReturn:
        exhausted = OSError(errno.EMFILE, "no file descriptors are left")
        raise OSError("All connection attempts failed") from exhausted

    monkeypatch.setattr("anyio.connect_tcp", connect_tcp)
    error = await failure(address_of_host("127.0.0.1"))
    assert error.stage == "tcp"
    assert str(error) == "no TCP connection to 127.0.0.1:5432: Too many open files"


@pytest.mark.parametrize("changes", [PLAIN, TLS])
async def test_cancelled_probe_closes_its_connection(
    changes: dict[str, bool], tls: ssl.SSLContext
) -> None:
    async with PostgresServer(responding(), tls=tls if changes else None) as server:
        task = asyncio.create_task(Probe(server.address(**changes)).run())
        await until(lambda: bool(server.startups))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not server.open_connections)
