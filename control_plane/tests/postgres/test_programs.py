"""Short runs of programs."""

import os
import time
from pathlib import Path

import pytest

from control_plane.tests.postgres.programs import write_script
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.programs import (
    KEPT_OUTPUT,
    Finished,
    ProgramTimeoutError,
    program_environment,
    run_program,
)

pytestmark = pytest.mark.postgres


def test_status_and_output_are_returned() -> None:
    command = ["/bin/sh", "-c", r"echo out; echo err >&2; printf '\377'; exit 3"]
    assert run_program(command, timeout=100) == Finished(3, "out\nerr\n\N{REPLACEMENT CHARACTER}")


def test_arguments_need_no_quoting() -> None:
    argument = "$HOME 'a' \"b\" `c`\n*"
    command = ["/bin/sh", "-c", 'printf %s "$1"', "sh", argument]
    assert run_program(command, timeout=100).output == argument


def test_environment_has_no_settings_and_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGDATA", "PGPASSWORD", "NEON_API_KEY", "LC_MESSAGES", "LANGUAGE"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    monkeypatch.setenv("TMPDIR", "/large")
    environment = program_environment()
    assert environment["PATH"] == "/bin:/usr/bin"
    assert environment["TMPDIR"] == "/large"
    assert environment["LC_ALL"] == "C"
    assert environment["TZ"] == "GMT"
    assert "secret" not in environment.values()
    assert "secret" not in run_program(["env"], timeout=100).output


def test_only_the_last_output_is_kept() -> None:
    command = ["/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; printf end"]
    output = run_program(command, timeout=100).output
    assert len(output) == KEPT_OUTPUT
    assert output.endswith("xxxend")


def test_new_files_are_private(open_directory: Path) -> None:
    run_program(["touch", open_directory / "file"], timeout=100)
    assert (open_directory / "file").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads the state in /proc")
def test_children_are_killed_with_a_program_that_hangs(open_directory: Path) -> None:
    script = write_script(
        open_directory / "hangs", f"sleep 100 & echo $! > {open_directory}/pid; wait"
    )
    with pytest.raises(ProgramTimeoutError):
        run_program([script], timeout=0.3)
    child = int((open_directory / "pid").read_text())
    while is_running(child):
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Return whether a process runs. A zombie does not: its parent here may never read its end."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_missing_program_is_an_error(open_directory: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_program([open_directory / "missing"], timeout=100)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can use another account")
def test_program_runs_as_the_account_without_other_groups() -> None:
    account = ServerAccount(54321, 54322, "stranger")
    result = run_program(["sh", "-c", "id -u; id -G"], timeout=100, account=account)
    assert result == Finished(0, "54321\n54322\n")
