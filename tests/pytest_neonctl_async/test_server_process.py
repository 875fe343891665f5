"""Who keeps the control plane of a run."""

import socket
from pathlib import Path

import pytest

from pytest_neonctl_async.server_process import ServerProcess, ServerURLs

pytestmark = pytest.mark.process


def test_a_module_where_the_tests_run_does_not_get_into_the_plane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.py").write_text("raise ImportError('it is for the tests')")
    monkeypatch.chdir(tmp_path)
    server = ServerProcess(0.01)
    try:
        assert server.plane().base_url
    finally:
        server.close()


def test_closing_ends_the_process_once() -> None:
    server = ServerProcess(0.01)
    plane: ServerURLs = server.plane()
    server.close()
    server.close()
    port = int(plane.base_url.split(":")[2].split("/")[0])
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))
