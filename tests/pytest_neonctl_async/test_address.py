"""How workers find the control plane that the main process keeps."""

import json
import socket
import sys
from collections.abc import Iterator

import pytest

from pytest_neonctl_async.address import Door, OpenDoor, WorkerHost
from pytest_neonctl_async.server_process import MainHost


@pytest.fixture
def host() -> Iterator[MainHost]:
    host = MainHost(0.01)
    yield host
    host.close()


@pytest.fixture
def door(host: MainHost) -> Iterator[OpenDoor]:
    door = OpenDoor(host.plane)
    yield door
    door.close()


def test_workers_find_the_plane_that_the_main_process_has_started(
    host: MainHost, door: OpenDoor
) -> None:
    worker = WorkerHost(Door(*json.loads(json.dumps(door.address))))
    plane = worker.plane()
    assert worker.plane() == plane == host.plane()


def test_a_closed_door_is_found_closed(host: MainHost) -> None:
    door = OpenDoor(host.plane)
    door.close()
    with pytest.raises(OSError, match="refused"):
        WorkerHost(door.address).plane()


def test_one_without_the_token_is_told_nothing() -> None:
    door = OpenDoor(lambda: pytest.fail("it was asked for"))
    try:
        with pytest.raises(RuntimeError, match="the main process is ending"):
            WorkerHost(door.address._replace(token="guessed")).plane()
        with socket.create_connection(("127.0.0.1", door.address.port)):
            pass  # one that hangs up disturbs nobody
        with pytest.raises(RuntimeError, match="the main process is ending"):
            WorkerHost(door.address._replace(token="")).plane()
    finally:
        door.close()


def test_a_plane_that_does_not_start_is_told_to_the_worker(
    door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="did not start: it says why on stderr"):
        WorkerHost(door.address).plane()
