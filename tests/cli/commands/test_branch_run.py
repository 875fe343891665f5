"""A command runs on a branch of its own, which is deleted whatever happens."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from neonctl_async.types import Branch
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.cli.conftest import CommandLine
from tests.cli.process import COMMAND, ended, started
from tests.cli.served import Served, served
from tests.support.postgres import skip_without_postgres
from tests.support.records import SECRETS

OWN_SESSION = """
import os, signal, sys
os.setsid()
for name in ("SIGHUP", "SIGINT", "SIGTERM"):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
if "TERMINAL" in os.environ:
    os.open(os.environ["TERMINAL"], os.O_RDWR)  # the terminal of the session, from now on
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Runs a program in a session of its own, with the signals of an interactive shell."""

WAITING = """
import os, signal, sys, time
parent, received = os.getppid(), []
signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
print("ready", flush=True)
while not received and os.getppid() == parent:
    time.sleep(0.01)
time.sleep(float(sys.argv[1]))
sys.exit(40 + len(received))
"""
"""Waits for SIGINT or for the death of its parent. Exits with 40 and the number of signals."""


@pytest.fixture(scope="module")
def real() -> Iterator[Served]:
    """A local control plane with real databases."""
    skip_without_postgres()
    with served(LocalControlPlane(durations=Durations(default=0), postgres=True)) as at:
        yield at


@pytest.fixture
def project(real: Served) -> Generator[str]:
    """A project, which has no branch but main after the test."""
    project_id = real.project().project.id
    yield project_id
    assert names_of_branches(real, project_id) == ["main"]


def branches(at: Served, project_id: str) -> list[Branch]:
    return at.run(lambda neon: neon.branches.list(project_id).collect())


def names_of_branches(at: Served, project_id: str) -> list[str]:
    return [branch.name for branch in branches(at, project_id)]


def running(
    at: Served, project_id: str, *arguments: str, **env: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start the command in a session of its own."""
    command = (*COMMAND, "branches", "run", "-p", project_id, *arguments)
    return started(sys.executable, "-c", OWN_SESSION, *command, **at.environment, **env)


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.01)


def waiting(seconds: float = 0) -> tuple[str, ...]:
    return "--", sys.executable, "-c", WAITING, str(seconds)


@pytest.mark.postgres
@pytest.mark.process
def test_command_gets_two_uris_and_no_key_and_its_status_is_returned(
    real: Served, project: str
) -> None:
    script = 'echo "$DATABASE_URL"; echo "$DATABASE_URL_POOLED"; echo "key $NEON_API_KEY"; exit 7'
    with running(real, project, "--from", "main", "--", "sh", "-c", script, PGPORT="1") as process:
        result = ended(process)
    direct, pooled, key = result.out.splitlines()
    assert (result.code, result.err, key) == (7, "", "key ")
    assert "-pooler" in pooled
    assert "-pooler" not in direct
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(direct)  # the branch is gone


@pytest.mark.postgres
@pytest.mark.process
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 41), (signal.SIGTERM, 143)])
def test_signals_reach_the_command(
    real: Served, project: str, number: signal.Signals, status: int
) -> None:
    with running(real, project, *waiting()) as process:
        wait_until_ready(process)
        process.send_signal(number)
        assert ended(process).code == status


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.process
def test_ctrl_c_on_a_terminal_reaches_the_command_once(real: Served, project: str) -> None:
    terminal, end_of_session = pty.openpty()
    name = os.ttyname(end_of_session)
    with running(real, project, *waiting(0.3), TERMINAL=name) as process:
        wait_until_ready(process)
        os.write(terminal, b"\x03")
        assert ended(process).code == 41
    os.close(terminal)
    os.close(end_of_session)


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.process
def test_branch_expires_after_a_kill(real: Served) -> None:
    project = real.project().project.id
    with running(real, project, *waiting()) as process:
        wait_until_ready(process)
        process.kill()
        assert ended(process).code == -signal.SIGKILL
    branch = branches(real, project)[0]
    assert branch.expires_at is not None
    assert branch.expires_at <= datetime.now(UTC) + timedelta(days=1)


@pytest.mark.postgres
def test_branch_of_a_failed_command_is_kept_on_request(cli: CommandLine, real: Served) -> None:
    project = real.project().project.id
    run = ("branches", "run", "-p", project, "--keep-on-failure", "--")
    assert cli(*run, "true", at=real).exit_code == 0
    assert names_of_branches(real, project) == ["main"]
    result = cli(*run, "false", at=real)
    assert result.exit_code == 1
    assert "was kept and expires at" in result.stderr
    delete = result.stderr.partition("to delete it: neonctl-async ")[2].split()
    assert cli(*delete, at=real).exit_code == 0
    assert names_of_branches(real, project) == ["main"]


@pytest.mark.postgres
def test_failed_deletion_does_not_change_the_status(
    cli: CommandLine, real: Served, project: str
) -> None:
    deletion = "DELETE /projects/{project_id}/branches/{branch_id}"
    real.control_plane.inject(Fault(route=deletion, status=422, times=1))
    result = cli("branches", "run", "-p", project, "--", "true", at=real)
    assert result.exit_code == 0
    assert "the ephemeral branch may still exist" in result.stderr
    left = branches(real, project)[0]
    assert left.expires_at is not None
    cli("branches", "delete", left.id, "-p", project, at=real)


@pytest.mark.postgres
def test_program_that_cannot_be_started_is_an_error(
    cli: CommandLine, real: Served, project: str
) -> None:
    program = Path("program")
    program.write_text("#!/missing/interpreter\n", encoding="utf-8")
    program.chmod(0o755)
    result = cli("branches", "run", "-p", project, "--", "./program", at=real)
    assert result.stderr == "error: ./program cannot be run: No such file or directory\n"
    assert result.exit_code == 2
    assert not SECRETS.search(result.output_bytes)


@pytest.mark.process
def test_interrupted_creation_runs_nothing_and_leaves_no_branch(slow: Served) -> None:
    project = slow.project().project.id
    with running(slow, project, "--", "touch", "ran") as process:
        wait_until(lambda: len(branches(slow, project)) == 2)
        process.send_signal(signal.SIGINT)
        result = ended(process)
    message = "stopping: the new branch is deleted first, which may take a minute\ninterrupted\n"
    assert (result.out, result.err, result.code) == ("", message, 130)
    assert names_of_branches(slow, project) == ["main"]
    assert not Path("ran").exists()


def test_branch_that_is_never_connectable_is_deleted(cli: CommandLine, quick: Served) -> None:
    project = quick.project().project.id
    result = cli("branches", "run", "-p", project, "--", "touch", "ran", at=quick)
    assert "is never connectable (dns)" in result.stderr
    assert result.exit_code == 1
    assert names_of_branches(quick, project) == ["main"]
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "no-such-program"], "'no-such-program' was not found"),
        (["--report", "report.txt", "--", "true"], "must end with .md or .json"),
        (["--report", "missing/report.md", "--", "true"], "cannot be written"),
        ([], "Missing argument"),
    ],
)
def test_mistakes_are_found_before_a_request(
    cli: CommandLine, quick: Served, arguments: list[str], message: str
) -> None:
    before = quick.control_plane.requests_served
    result = cli("branches", "run", "-p", "x", *arguments, at=quick)
    assert message in " ".join(result.stderr.split())
    assert result.exit_code == 2
    assert quick.control_plane.requests_served == before


def test_report_without_the_driver_names_the_extra(
    cli: CommandLine, quick: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    result = cli("branches", "run", "-p", "x", "--report", "r.md", "--", "true", at=quick)
    assert "pip install 'neonctl-async[cli,postgres]'" in result.stderr
    assert result.exit_code == 2
