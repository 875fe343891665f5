"""Workers get the URLs of the local control plane from the main process."""

import json
import socket
import sys
from collections.abc import Iterator

import pytest

from pytest_neonctl_async.address import AddressServer, ServerAddress, fetch_urls
from pytest_neonctl_async.server_process import ServerProcess


@pytest.fixture
def process() -> Iterator[ServerProcess]:
    process = ServerProcess(0.01)
    yield process
    process.close()


@pytest.fixture
def server(process: ServerProcess) -> Iterator[AddressServer]:
    server = AddressServer(process.urls)
    yield server
    server.close()


@pytest.mark.process
def test_workers_and_main_process_use_the_same_server(
    process: ServerProcess, server: AddressServer
) -> None:
    address = ServerAddress(*json.loads(json.dumps(server.address)))  # as pytest-xdist passes it
    urls = fetch_urls(address)
    assert fetch_urls(address) == urls == process.urls()


def test_closed_address_server_refuses_connections(process: ServerProcess) -> None:
    server = AddressServer(process.urls)
    server.close()
    with pytest.raises(OSError, match="refused"):
        fetch_urls(server.address)


def test_request_without_the_token_gets_no_urls() -> None:
    server = AddressServer(lambda: pytest.fail("the URLs were read"))
    try:
        with pytest.raises(RuntimeError, match="the main process is ending"):
            fetch_urls(server.address._replace(token="guessed"))
        with socket.create_connection(("127.0.0.1", server.address.port)):
            pass  # a client that sends nothing must not stop the server
        with pytest.raises(RuntimeError, match="the main process is ending"):
            fetch_urls(server.address._replace(token=""))
    finally:
        server.close()


@pytest.mark.process
def test_failed_start_is_reported_to_the_worker(
    server: AddressServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="did not start: see its output on stderr"):
        fetch_urls(server.address)


def test_repr_of_an_address_shows_no_token() -> None:
    assert repr(ServerAddress(8080, "sesame")) == "<ServerAddress 8080>"
