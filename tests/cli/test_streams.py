"""Programs whose standard streams are closed, broken or full exit with their own status."""

import sys

import pytest

from neonctl_async.cli.exits import ExitCode
from tests.cli.process import UNWRITABLE, ended, redirected, started

pytestmark = pytest.mark.process


def program(command: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", *command.split()]


@pytest.mark.parametrize("stream", UNWRITABLE)
def test_unwritable_stderr_does_not_change_the_status(stream: str) -> None:
    command = program("neonctl_async no-such-command")
    assert redirected(stream.format("2"), *command).code == ExitCode.USAGE


@pytest.mark.long
@pytest.mark.parametrize("stream", UNWRITABLE)
@pytest.mark.parametrize("command", ["neonctl_async --version", "neonctl_async demo"])
def test_unwritable_stdout_is_an_output_error(stream: str, command: str) -> None:
    output = redirected(stream.format("1"), *program(command))
    [line] = output.err.splitlines()
    assert line.startswith("error: standard output cannot be written: [Errno ")
    assert output.code == ExitCode.OUTPUT_ERROR


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_buffering_does_not_change_the_status(unbuffered: str) -> None:
    command = program("neonctl_async --help")
    output = redirected(">&-", *command, PYTHONUNBUFFERED=unbuffered)
    assert output.code == ExitCode.OUTPUT_ERROR


@pytest.mark.long
@pytest.mark.parametrize("command", ["neonctl_async --version", "neonctl_async demo"])
def test_a_reader_that_is_gone_is_a_broken_pipe(command: str) -> None:
    with started(*program(command)) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        output = ended(process)
    assert (output.err, output.code) == ("", ExitCode.BROKEN_PIPE)


def test_a_program_that_fails_keeps_its_status_when_nobody_reads() -> None:
    with started(*program("neonctl_async projects list")) as process:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        assert process.wait() == ExitCode.USAGE


def test_an_error_that_is_not_about_output_is_raised() -> None:
    script = "from neonctl_async.cli.streams import exit_with; exit_with(lambda: open('missing'))"
    output = redirected("", sys.executable, "-c", script)
    assert "FileNotFoundError" in output.err
    assert output.code == 1


@pytest.mark.parametrize("stream", UNWRITABLE)
@pytest.mark.parametrize("failure", ["ZeroDivisionError", "FileNotFoundError"])
def test_failure_with_lost_output_is_raised(stream: str, failure: str) -> None:
    script = (
        "from neonctl_async.cli.streams import exit_with\n"
        f"def fail(): print('lost'); raise {failure}\n"
        "exit_with(fail)"
    )
    output = redirected(stream.format("1"), sys.executable, "-c", script, PYTHONUNBUFFERED="")
    assert failure in output.err
    assert output.code == 1


def test_no_file_gets_the_number_of_a_closed_stream() -> None:
    script = (
        "import os; from neonctl_async.cli.streams import exit_with; "
        "exit_with(lambda: int(min(os.pipe()) <= 2))"
    )
    assert redirected("<&- >&- 2>&-", sys.executable, "-c", script).code == 0
