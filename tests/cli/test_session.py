"""How a command ends: its exit code, and what it says and leaves."""

import asyncio
import signal
from pathlib import Path

import pytest

from neonctl_async import NeonClient
from neonctl_async.cli.output import Output, Screen
from neonctl_async.cli.session import CommandSession
from neonctl_async.local import Fault
from tests.cli.conftest import CommandLine
from tests.cli.process import COMMAND, ended, started
from tests.cli.served import Served
from tests.support.pages import TEXTS, code_blocks
from tests.support.records import API_KEY


def test_without_a_key_it_says_how_to_get_one(cli: CommandLine) -> None:
    result = cli("projects", "list")
    [line] = result.stderr.splitlines()
    assert line.startswith("error: no API key: set NEON_API_KEY")
    assert "neonctl-async local" in line
    assert (result.stdout, result.exit_code) == ("", 2)


@pytest.mark.parametrize(
    ("arguments", "complaint", "code"),
    [
        (("branches", "get", "a/b", "-p", "x"), "error: branch_id is 'a/b'", 2),
        (("projects", "list", "--api-host", "ftp://x"), "error: base_url is 'ftp://x'", 2),
        (("projects", "get", "x"), "error: GET /projects/x: 404", 3),
    ],
)
def test_an_error_is_told_in_a_line(
    cli: CommandLine, quick: Served, arguments: tuple[str, ...], complaint: str, code: int
) -> None:
    result = cli(*arguments, at=quick)
    last = result.stderr.splitlines()[-1]
    assert last.startswith(complaint)
    assert (result.stdout, result.exit_code) == ("", code)
    assert quick.control_plane.api_key not in result.output


def test_nobody_who_reads_is_no_error(quick: Served) -> None:
    with started(*COMMAND, "projects", "list", **quick.environment) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        output = ended(process)
    assert (output.err, output.code) == ("", 141)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to write to")
def test_standard_output_that_cannot_be_written_is_told(quick: Served) -> None:
    command = ("sh", "-c", '"$@" > /dev/full', "sh", *COMMAND)
    with started(*command, "api-keys", "create", "lost", "-o", "raw", **quick.environment) as one:
        output = ended(one)
    [key] = [key for key in quick.ask(lambda neon: neon.api_keys.list()) if key.name == "lost"]
    warning, error = output.err.splitlines()
    assert warning.startswith(f"store the token of key {key.id} now: ")
    assert error.startswith("error: standard output cannot be written: ")
    assert output.code == 74


def test_a_wait_goes_on_though_nobody_reads_what_it_tells(slow: Served) -> None:
    with started(*COMMAND, "projects", "create", "--timeout", "0.5", **slow.environment) as process:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        assert process.wait() == 4
    [file] = Path.cwd().iterdir()
    assert file.name == "neonctl-async-pending-1.jsonl"


IN_BACKGROUND = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
"""As scripts run what is to be done in the background: without SIGINT."""


@pytest.mark.parametrize(("how", "number"), [((), signal.SIGINT), (IN_BACKGROUND, signal.SIGTERM)])
def test_an_interrupted_wait_tells_how_to_resume_it(
    slow: Served, how: tuple[str, ...], number: int
) -> None:
    id = slow.project().project.id
    environment = {**slow.environment, "NEON_PROJECT_ID": id}
    command = (*how, *COMMAND, "operations", "watch", "-o", "jsonl")
    with started(*command, **environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        output = ended(process)
    [file] = Path.cwd().iterdir()
    assert file.name in output.err
    assert [output.err] == [text for _, text in code_blocks(TEXTS["docs/command-line.md"], "text")]
    assert len(file.read_text().splitlines()) == 2
    assert output.code == 130


async def test_a_request_that_is_interrupted_may_have_been_carried_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    session = CommandSession(Screen(Output.TABLE), NeonClient(API_KEY))
    task = asyncio.create_task(session.ask(asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert capsys.readouterr().err == ("the request was under way: it may have been carried out\n")


def test_where_no_file_can_be_written_the_operations_are_named(
    cli: CommandLine, slow: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    created = slow.project()
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = cli("operations", "wait", "--timeout", "0", "-p", created.project.id, at=slow)
    *_, complaint, named = result.stderr.splitlines()
    assert complaint.startswith("cannot write down what is pending")
    assert all(one.id in named for one in created.operations)
    assert result.exit_code == 4


def test_a_file_that_cannot_be_written_whole_is_not_left(slow: Served) -> None:
    id = slow.project().project.id
    without_room = ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *COMMAND)
    arguments = ("operations", "wait", "--timeout", "0", "-p", id)
    with started(*without_room, *arguments, **slow.environment) as process:
        output = ended(process)
    assert "cannot write down what is pending" in output.err
    assert not list(Path.cwd().iterdir())
    assert output.code == 4


def test_a_further_try_is_told_in_a_line_that_no_terminal_obeys(
    cli: CommandLine, quick: Served
) -> None:
    message = "no\nroom \x1b]0;owned\x07"
    quick.control_plane.inject(
        Fault(
            route="GET /projects",
            status=503,
            message=message,
            headers={"Retry-After": "0"},
            times=1,
        )
    )
    [line] = cli("projects", "list", "-o", "json", at=quick).stderr.splitlines()
    assert line.startswith("trying again in ")
    assert r"503 Service Unavailable: no\nroom \x1b]0;owned\x07 (request" in line


def test_a_wait_tells_people_how_far_it_is_and_scripts_nothing(
    cli: CommandLine, quick: Served
) -> None:
    created = quick.project()
    ids = [one.id for one in created.operations]
    arguments = ("operations", "wait", *ids, "-p", created.project.id)
    assert "2 of 2 operations ended" in cli(*arguments, at=quick).stderr
    assert cli(*arguments, "-o", "json", at=quick).stderr == ""
