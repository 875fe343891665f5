"""Calls of the plugin end with one clear error when the server process is killed."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pytest_neonctl_async.conftest import RunSuite

KILLS = """
    import asyncio, os, signal, subprocess, threading, time
    import pytest
    from pathlib import Path

    from pytest_neonctl_async import plugin


    def kill(request, with_guardian):
        server = request.config.stash[plugin._SERVER_PROCESS]._process.pid
        os.kill(server, signal.SIGSTOP)  # it would start another guardian
        if with_guardian:
            children = Path(f"/proc/{server}/task").glob("*/children")
            pids = [pid for file in children for pid in file.read_text().split()]
            guardians = [
                int(pid) for pid in pids if b"guardian" in Path(f"/proc/{pid}/cmdline").read_bytes()
            ]
            assert guardians
            for pid in guardians:
                os.kill(pid, signal.SIGKILL)
        os.kill(server, signal.SIGKILL)


    def ends(call):
        started = time.monotonic()
        with pytest.raises(RuntimeError, match="local control plane of this test run has exited"):
            call()
        assert time.monotonic() - started < 10


    def test_calls_raise_the_error(request, neon_branch, neon_branch_factory, neon_control_plane):
        timer = threading.Timer(0.1, kill, (request, WITH_GUARDIAN))
        timer.start()
        def create_until_the_kill():
            while True:
                neon_branch_factory.create()
        ends(create_until_the_kill)
        timer.join()
        ends(neon_branch_factory.create)
        ends(lambda: asyncio.run(neon_control_plane.requests()))

    def test_next_test_fails_at_once(neon_branch):
        pass
"""


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of temporary files of the suite. Sockets need a short path."""
    directory = Path(tempfile.mkdtemp(prefix="neonctl-test-")).resolve()
    directory.chmod(0o711)
    monkeypatch.setenv("TMPDIR", str(directory))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)  # the guardian may be removing files of it


@pytest.mark.long
@pytest.mark.parametrize("with_guardian", [False, True])
@pytest.mark.parametrize(
    "postgres",
    [
        pytest.param(True, marks=pytest.mark.postgres),
        pytest.param(False, marks=pytest.mark.process),
    ],
)
def test_calls_fail_when_the_server_is_killed(
    pytester: pytest.Pytester,
    run_suite: RunSuite,
    temporary: Path,
    *,
    with_guardian: bool,
    postgres: bool,
) -> None:
    if with_guardian and not postgres:
        pytest.skip("without databases, there is no guardian")
    pytester.makepyfile(KILLS.replace("WITH_GUARDIAN", str(with_guardian)))
    run = run_suite("-o", f"neon_postgres={postgres}")
    outcomes = run.parseoutcomes()
    assert outcomes["passed"] == 1
    run.stdout.fnmatch_lines("*ServerLostError: the local control plane of this test run*")
    while list(temporary.glob("neonctl-pg-*")):  # the guardian may still be removing them
        time.sleep(0.05)
