"""A command whose standard streams are closed or full exits with a status of its own."""

import sys

import pytest

from tests.cli.process import UNWRITABLE, ended, redirected, started

pytestmark = pytest.mark.process


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "neonctl_local", *arguments]


@pytest.mark.parametrize("stream", UNWRITABLE)
def test_unwritable_stderr_does_not_change_the_status(stream: str) -> None:
    assert redirected(stream.format("2"), *program("--port", "x")).code == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_help_that_cannot_be_written_is_an_output_error(unbuffered: str) -> None:
    output = redirected(">&-", *program("--help"), PYTHONUNBUFFERED=unbuffered)
    assert output.code == 74
    assert "standard output cannot be written: [Errno " in output.err


def test_a_reader_that_is_gone_is_a_broken_pipe() -> None:
    with started(*program("--help")) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        output = ended(process)
    assert (output.err, output.code) == ("", 141)


def test_server_reports_that_it_cannot_print_its_address() -> None:
    output = redirected(">&-", *program("--port", "0", "--quiet"))
    assert "standard output cannot be written: [Errno " in output.err
    assert output.code == 1


def test_no_file_gets_the_number_of_a_closed_stream() -> None:
    script = (
        "import os; from neonctl_local.streams import exit_with; "
        "exit_with(lambda: int(min(os.pipe()) <= 2))"
    )
    assert redirected("<&- >&- 2>&-", sys.executable, "-c", script).code == 0
