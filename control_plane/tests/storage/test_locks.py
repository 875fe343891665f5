"""The lock of a data file."""

import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from neonctl_local.storage.locks import lock_data_file

HOLD = """
import sys
from pathlib import Path
from neonctl_local.storage.locks import lock_data_file
lock = lock_data_file(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The path of a data file."""
    return tmp_path / "data.db"


def test_second_lock_names_the_process_of_the_first(data: Path) -> None:
    lock = lock_data_file(data)
    with pytest.raises(
        RuntimeError,
        match=rf"data\.db: this process \({os.getpid()}\) uses it; connect to its server",
    ):
        lock_data_file(data)
    lock.release()
    lock_data_file(data).release()
    assert list(data.parent.iterdir()) == []


def test_links_to_a_file_share_its_lock(data: Path) -> None:
    link = data.with_name("link.db")
    data.touch()
    link.symlink_to(data)
    lock = lock_data_file(link)
    with pytest.raises(RuntimeError, match="uses it"):
        lock_data_file(data)
    lock.release()


@pytest.mark.process
def test_lock_lasts_until_its_process_is_killed(data: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(RuntimeError, match=f"process {process.pid} uses it"):
            lock_data_file(data)
        process.send_signal(signal.SIGKILL)
    lock_data_file(data).release()


def test_process_of_another_machine_is_named_with_the_machine(data: Path) -> None:
    lock = lock_data_file(data)
    data.with_name("data.db.lock").write_text("7 web-1\n")
    with pytest.raises(RuntimeError, match="process 7 on web-1 uses it"):
        lock_data_file(data)
    lock.release()


@pytest.mark.parametrize("text", ["", f"{2**31 - 1} {socket.gethostname()}\n"])
def test_lock_of_a_process_that_is_gone_is_waited_for(
    data: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = lock_data_file(data)
    data.with_name("data.db.lock").write_text(text)
    waits: list[float] = []

    def release(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            lock.release()

    monkeypatch.setattr("neonctl_local.storage.locks.time.sleep", release)
    lock_data_file(data).release()
    assert len(waits) == 3


def test_lock_needs_no_space_on_the_disk(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neonctl_local.storage.locks._RELEASE_SECONDS", 0.05)

    def refuse(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("neonctl_local.storage.locks.os.write", refuse)
    lock = lock_data_file(data)
    with pytest.raises(RuntimeError, match=r"data\.db: another process uses it"):
        lock_data_file(data)
    lock.release()
    lock_data_file(data).release()


def test_lock_is_released_if_its_file_cannot_be_removed(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError("the directory is read-only")

    monkeypatch.setattr(Path, "unlink", refuse)
    lock_data_file(data).release()
    assert data.with_name("data.db.lock").exists()
    lock_data_file(data).release()


def test_missing_directory_is_named(data: Path) -> None:
    message = r"cannot keep data in .*missing/data\.db: the directory .*missing does not exist"
    with pytest.raises(RuntimeError, match=message):
        lock_data_file(data.parent / "missing" / "data.db")


def test_lock_that_is_no_file_is_named_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "data.db.lock").mkdir()
    with pytest.raises(RuntimeError) as caught:
        lock_data_file(tmp_path / "data.db")
    lock = f"the lock {tmp_path}/data.db.lock cannot be used: Is a directory. Move it away"
    assert lock in str(caught.value)
