"""The main process starts the local control plane once, and stops it."""

import socket
from pathlib import Path

import pytest

from pytest_neonctl_async.server_process import ServerProcess

pytestmark = pytest.mark.process


def test_server_imports_no_module_from_the_directory_of_the_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.py").write_text("raise ImportError('a module of the tests')")
    monkeypatch.chdir(tmp_path)
    process = ServerProcess(0.01)
    try:
        assert process.urls().base_url
    finally:
        process.close()


def test_closing_twice_stops_the_server_once() -> None:
    process = ServerProcess(0.01)
    urls = process.urls()
    process.close()
    process.close()
    port = int(urls.base_url.split(":")[2].split("/")[0])
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))


def test_second_value_of_neon_postgres_is_refused() -> None:
    process = ServerProcess(0.01)
    try:
        urls = process.urls()
        with pytest.raises(RuntimeError, match=r"^neon_postgres is '/opt/postgres', but .*topmost"):
            process.urls("/opt/postgres")
        assert process.urls() == urls
    finally:
        process.close()


def test_failed_start_is_not_repeated(tmp_path: Path) -> None:
    process = ServerProcess(0.01)
    try:
        for _ in range(2):
            with pytest.raises(
                RuntimeError, match=r"did not start: .*does not contain the program"
            ):
                process.urls(str(tmp_path))
    finally:
        process.close()
