"""Who keeps the control plane of a run, and how workers find it."""

import json
import socket
import sys
from pathlib import Path

import pytest

from pytest_neonctl_async.host import Door, MainHost, Plane, WorkerHost


def test_workers_find_the_plane_that_the_main_process_has_started() -> None:
    host = MainHost(0.01)
    try:
        worker = WorkerHost(Door(*json.loads(json.dumps(host.door()))))
        plane = worker.plane()
        assert worker.plane() == plane == host.plane()
    finally:
        host.close()
    with pytest.raises(OSError, match="refused"):
        worker.plane()


def test_one_without_the_token_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    host = MainHost(0.01)
    monkeypatch.setattr(host, "plane", lambda: pytest.fail("it was asked for"))
    try:
        with pytest.raises(RuntimeError, match="the main process is ending"):
            WorkerHost(host.door()._replace(token="guessed")).plane()
        with socket.create_connection(("127.0.0.1", host.door().port)):
            pass  # one that hangs up disturbs nobody
        with pytest.raises(RuntimeError, match="the main process is ending"):
            WorkerHost(host.door()._replace(token="")).plane()
    finally:
        host.close()


def test_a_plane_that_does_not_start_is_told_to_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    host = MainHost(0.01)
    try:
        with pytest.raises(RuntimeError, match="did not start: it says why on stderr"):
            WorkerHost(host.door()).plane()
    finally:
        host.close()


def test_a_module_where_the_tests_run_does_not_get_into_the_plane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.py").write_text("raise ImportError('it is for the tests')")
    monkeypatch.chdir(tmp_path)
    host = MainHost(0.01)
    try:
        assert host.plane().base_url
    finally:
        host.close()


def test_closing_ends_the_process_once() -> None:
    host = MainHost(0.01)
    plane: Plane = host.plane()
    host.close()
    host.close()
    port = int(plane.base_url.split(":")[2].split("/")[0])
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))
