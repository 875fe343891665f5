import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.copying import copy_cluster
from neonctl_local.postgres.servers import guardian
from neonctl_local.postgres.servers.guardian import end_servers, find_servers
from neonctl_local.postgres.servers.postmaster import READY, identity, options
from neonctl_local.postgres.template import Template

pytestmark = pytest.mark.postgres

Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(
    open_directory: Path,
    installation: Installation,
    template: Template,
    account: ServerAccount | None,
) -> Iterator[Start]:
    """A function that starts a server with the data directory ``clusters/<name>``."""
    processes: list[subprocess.Popen[bytes]] = []

    user, group, extra_groups = identity(account)

    def start_server(name: str) -> "subprocess.Popen[bytes]":
        data = open_directory / "clusters" / name
        if not data.exists():
            data.parent.mkdir(exist_ok=True)
            copy_cluster(template.directory, data, account=account)
        settings = options(data, 1, durable=False).items()
        process = subprocess.Popen(
            [
                installation.program("postgres"),
                "-D",
                data,
                *(f"--{name}={value}" for name, value in settings),
            ],
            cwd=data,
            stderr=subprocess.PIPE,
            user=user,
            group=group,
            extra_groups=extra_groups,
        )
        processes.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if READY.encode() in line:
                break
        return process

    yield start_server
    for process in processes:
        process.kill()
        process.communicate()
    end_servers(open_directory)


def segments() -> set[str]:
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {line.split()[1] for line in lines}


def segment_of(data: Path) -> str:
    return (data / "postmaster.pid").read_text().split("\n")[6].split()[1]


def children_of(parent: int) -> set[int]:
    listing = subprocess.run(
        ["/bin/ps", "-ax", "-o", "pid=,ppid="], stdout=subprocess.PIPE, check=True
    ).stdout
    return {int(pid) for pid, of in map(bytes.split, listing.splitlines()) if int(of) == parent}


def test_servers_below_a_directory_are_found_and_ended(start: Start, open_directory: Path) -> None:
    first, second = start("first"), start("second")
    found = find_servers(open_directory)
    assert {first.pid, second.pid} < set(found), "their child processes are found as well"
    assert set(find_servers(open_directory / "clusters" / "first")) < set(found)
    assert find_servers(open_directory / "clusters" / "fir") == []
    assert end_servers(open_directory) >= 2
    assert find_servers(open_directory) == []
    assert first.wait() == 0
    assert end_servers(open_directory) == 0


def test_servers_are_found_in_the_list_of_processes_too(
    start: Start, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guardian, "HAS_PROC", False)
    process = start("first")
    found = set(find_servers(open_directory))
    assert process.pid in found
    # a process that the server has just forked still shows the server's command line
    assert found - {process.pid} <= children_of(process.pid)
    end_servers(open_directory)
    process.wait()


def test_server_that_ignores_the_signal_is_killed(
    start: Start, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guardian, "_QUIT_TIME", 0.1)
    process = start("first")
    process.send_signal(signal.SIGSTOP)
    end_servers(open_directory)
    assert process.wait() == -signal.SIGKILL


def test_memory_of_killed_servers_is_removed(start: Start, open_directory: Path) -> None:
    process = start("first")
    data = open_directory / "clusters" / "first"
    segment = segment_of(data)
    assert segment in segments()
    end_servers_by_force(process, data)
    assert segment in segments(), "Postgres left it behind"
    end_servers(open_directory)
    assert segment not in segments()


def test_memory_that_a_server_uses_stays(
    start: Start, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guardian, "_DETACH_TIME", 0.05)
    start("first")
    segment = segment_of(open_directory / "clusters" / "first")
    line = (open_directory / "clusters/first/postmaster.pid").read_text().split("\n")[6]
    key, _ = line.split()
    guardian.remove_shared_memory({int(segment): int(key)})
    assert segment in segments()


def end_servers_by_force(process: "subprocess.Popen[bytes]", data: Path) -> None:
    process.kill()
    process.wait()
    while find_servers(data):
        time.sleep(0.01)


def test_other_programs_in_the_directory_are_left_alone(open_directory: Path) -> None:
    sleeping = subprocess.Popen(["sleep", "60"], cwd=open_directory)
    assert find_servers(open_directory) == []
    assert end_servers(open_directory) == 0
    assert sleeping.poll() is None
    sleeping.kill()
    sleeping.wait()


def start_guardian(root: Path, *temporary: Path) -> "subprocess.Popen[bytes]":
    directories = map(str, (root, *temporary))
    command = [sys.executable, "-I", "-S", guardian.__file__, *directories]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


def test_guardian_ends_servers_and_removes_files_when_its_pipe_closes(
    start: Start, open_directory: Path
) -> None:
    temporary = open_directory / "temporary"
    temporary.mkdir()
    process = start("first")
    guard = start_guardian(open_directory, temporary)
    assert process.poll() is None
    assert guard.communicate()[1] == b""
    assert guard.returncode == 0
    process.wait()
    assert not temporary.exists()
    assert (open_directory / "clusters" / "first").exists()


def test_guardian_does_nothing_after_an_orderly_end(start: Start, open_directory: Path) -> None:
    process = start("first")
    guard = start_guardian(open_directory, open_directory)
    assert guard.communicate(guardian.DONE)[1] == b""
    assert guard.returncode == 0
    assert process.poll() is None
    assert open_directory.exists()


def test_guardian_notices_a_dead_parent_although_the_pipe_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(guardian, "_PARENT_CHECK", 0.01)
    monkeypatch.setattr(guardian, "_INPUT", reading)
    assert not guardian.wait_for_end(os.getppid() + 1)
    os.write(writing, guardian.DONE)
    assert guardian.wait_for_end(os.getppid())
    os.close(writing)
    assert not guardian.wait_for_end(os.getppid())
    os.close(reading)


def test_guardian_ignores_the_signals_of_a_terminal(open_directory: Path) -> None:
    guard = start_guardian(open_directory)
    assert guard.stdin is not None
    while not ignored_signals(guard.pid) & (1 << (signal.SIGTERM - 1)):
        time.sleep(0.005)
    guard.send_signal(signal.SIGINT)
    guard.send_signal(signal.SIGTERM)
    guard.communicate(guardian.DONE)
    assert guard.returncode == 0


def ignored_signals(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigIgn:"):
            return int(line.split()[1], 16)
    return 0
