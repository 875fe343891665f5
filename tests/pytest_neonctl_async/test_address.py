"""How workers find the control plane that the main process keeps."""

import json
import socket
import sys
from collections.abc import Iterator

import pytest

from pytest_neonctl_async.address import AddressServer, PlaneAddress, WorkerClient
from pytest_neonctl_async.server_process import ServerProcess


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    server = ServerProcess(0.01)
    yield server
    server.close()


@pytest.fixture
def address(server: ServerProcess) -> Iterator[AddressServer]:
    address = AddressServer(server.plane)
    yield address
    address.close()


@pytest.mark.process
def test_workers_find_the_plane_that_the_main_process_has_started(
    server: ServerProcess, address: AddressServer
) -> None:
    worker = WorkerClient(PlaneAddress(*json.loads(json.dumps(address.address))))
    plane = worker.plane()
    assert worker.plane() == plane == server.plane()


def test_a_closed_door_is_found_closed(server: ServerProcess) -> None:
    address = AddressServer(server.plane)
    address.close()
    with pytest.raises(OSError, match="refused"):
        WorkerClient(address.address).plane()


def test_one_without_the_token_is_told_nothing() -> None:
    address = AddressServer(lambda: pytest.fail("it was asked for"))
    try:
        with pytest.raises(RuntimeError, match="the main process is ending"):
            WorkerClient(address.address._replace(token="guessed")).plane()
        with socket.create_connection(("127.0.0.1", address.address.port)):
            pass  # one that hangs up disturbs nobody
        with pytest.raises(RuntimeError, match="the main process is ending"):
            WorkerClient(address.address._replace(token="")).plane()
    finally:
        address.close()


@pytest.mark.process
def test_a_plane_that_does_not_start_is_told_to_the_worker(
    address: AddressServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="did not start: it says why on stderr"):
        WorkerClient(address.address).plane()
