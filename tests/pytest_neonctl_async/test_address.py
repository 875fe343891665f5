"""Workers get the URLs of the local control plane from the main process."""

import json
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NoReturn

import pytest

from pytest_neonctl_async.address import (
    AddressServer,
    RemoteClaims,
    ServerAddress,
    fetch_urls,
)
from pytest_neonctl_async.once import LocalClaims, Outcome, perform_once
from pytest_neonctl_async.server_process import ServerProcess


@pytest.fixture
def process() -> Iterator[ServerProcess]:
    process = ServerProcess(0.01)
    yield process
    process.close()


@pytest.fixture
def server(process: ServerProcess) -> Iterator[AddressServer]:
    server = AddressServer(process.urls, LocalClaims())
    yield server
    server.close()


@pytest.mark.process
def test_workers_and_main_process_use_the_same_server(
    process: ServerProcess, server: AddressServer
) -> None:
    address = ServerAddress(*json.loads(json.dumps(server.address)))  # as pytest-xdist passes it
    urls = fetch_urls(address, None)
    assert fetch_urls(address, None) == urls == process.urls()


def test_closed_address_server_is_reported(process: ServerProcess) -> None:
    server = AddressServer(process.urls, LocalClaims())
    server.close()
    with pytest.raises(RuntimeError, match="the main process is ending"):
        fetch_urls(server.address, None)


def test_request_without_the_token_gets_no_urls() -> None:
    server = AddressServer(lambda _: pytest.fail("the URLs were read"), LocalClaims())
    try:
        with pytest.raises(RuntimeError, match="the main process is ending"):
            fetch_urls(server.address._replace(token="guessed"), None)
        with socket.create_connection(("127.0.0.1", server.address.port)):
            pass  # a client that sends nothing must not stop the server
        with pytest.raises(RuntimeError, match="the main process is ending"):
            fetch_urls(server.address._replace(token=""), None)
    finally:
        server.close()


@pytest.mark.process
def test_failed_start_is_reported_to_the_worker(
    server: AddressServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="did not start: see its output on stderr"):
        fetch_urls(server.address, None)


def test_repr_of_an_address_shows_no_token() -> None:
    assert repr(ServerAddress(8080, "sesame")) == "<ServerAddress 8080>"


@pytest.fixture
def claims() -> Iterator[ServerAddress]:
    """The address of a main process without a local control plane."""
    server = AddressServer(lambda _: pytest.fail("the URLs were read"), LocalClaims())
    yield server.address
    server.close()


def refuse() -> NoReturn:
    raise AssertionError("the step was performed twice")


def test_step_of_one_worker_is_the_result_of_all(claims: ServerAddress) -> None:
    assert perform_once(RemoteClaims(claims), lambda: Outcome("template")) == "template"
    assert perform_once(RemoteClaims(claims), refuse) == "template"


def test_worker_waits_while_another_one_performs_the_step(claims: ServerAddress) -> None:
    first = RemoteClaims(claims)
    assert first.claim() is None
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(perform_once, RemoteClaims(claims), refuse) for _ in range(2)]
        first.record(Outcome("template"))
        assert [future.result() for future in waiting] == ["template", "template"]


def test_failed_step_of_one_worker_is_the_error_of_all(claims: ServerAddress) -> None:
    def fail() -> NoReturn:
        raise ValueError("no such table")

    for step in (fail, refuse):
        with pytest.raises(RuntimeError, match="could not be prepared: ValueError: no such table"):
            perform_once(RemoteClaims(claims), step)


def test_claim_of_a_dead_worker_is_released(claims: ServerAddress) -> None:
    dead = RemoteClaims(claims)
    assert dead.claim() is None
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(perform_once, RemoteClaims(claims), lambda: Outcome("template"))
        dead.release()  # as the operating system closes the socket of a killed process
        assert waiting.result() == "template"


def test_worker_that_dies_while_it_waits_gets_no_claim(claims: ServerAddress) -> None:
    first = RemoteClaims(claims)
    assert first.claim() is None
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", claims.port)) as dead:
            request = {"token": claims.token, "request": "claim", "argument": None}
            dead.sendall(json.dumps(request).encode() + b"\n")
    first.release()
    assert perform_once(RemoteClaims(claims), lambda: Outcome("template")) == "template"


def test_waiting_worker_ends_with_the_main_process() -> None:
    server = AddressServer(lambda _: pytest.fail("the URLs were read"), LocalClaims())
    first = RemoteClaims(server.address)
    assert first.claim() is None
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(perform_once, RemoteClaims(server.address), refuse)
        server.close()
        with pytest.raises(RuntimeError, match="the main process is ending"):
            waiting.result()
    first.record(Outcome("too late"))


@pytest.mark.parametrize("message", [b"[]\n", b"{}\n", b"\xff\n", b"1" * 10_000])
def test_garbage_gets_no_response_and_harms_no_worker(
    claims: ServerAddress, message: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", claims.port)) as connection:
        connection.sendall(message)
        with suppress(ConnectionResetError):  # the server has not read the rest
            assert connection.recv(1) == b""
    assert perform_once(RemoteClaims(claims), lambda: Outcome("template")) == "template"
