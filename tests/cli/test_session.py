"""The exit of a command: its exit code, its messages and its files."""

import asyncio
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from neonctl_async import NeonClient
from neonctl_async.cli.output import Output, Screen
from neonctl_async.cli.session import CommandSession
from neonctl_local import Fault
from tests.cli.conftest import CommandLine
from tests.cli.process import COMMAND, UNWRITABLE, ended, redirected, started
from tests.cli.served import Served
from tests.support.pages import TEXTS, code_blocks
from tests.support.records import API_KEY

pytestmark = pytest.mark.process


PROJECT = "missing-project-12345678"


def test_missing_key_error_names_the_next_step(cli: CommandLine) -> None:
    result = cli("projects", "list")
    [line] = result.stderr.splitlines()
    assert line.startswith("error: no API key: create one in the Neon console")
    assert "neonctl-async local" in line
    assert (result.stdout, result.exit_code) == ("", 2)


def test_named_host_is_reached_over_plain_http(
    cli: CommandLine, quick: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = socket.getaddrinfo

    def service_names(host: str, *args: Any, **kwargs: Any) -> Any:
        return resolve({"control-plane": "127.0.0.1"}[host], *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", service_names)
    url = quick.control_plane.base_url.replace("127.0.0.1", "control-plane")
    refused = cli("projects", "list", at=quick, NEON_API_HOST=url)
    assert "or set NEON_ALLOW_HTTP=control-plane" in refused.stderr
    allowed = {"NEON_API_HOST": url, "NEON_ALLOW_HTTP": "control-plane"}
    assert cli("projects", "list", "-o", "raw", at=quick, **allowed).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "complaint", "code"),
    [
        (("operations", "get", "a/b", "-p", PROJECT), "error: operation_id is 'a/b'", 2),
        (("projects", "list", "--api-host", "ftp://x"), "error: base_url is 'ftp://x'", 2),
        (("projects", "get", PROJECT), f"error: GET /projects/{PROJECT}: 404", 3),
    ],
)
def test_error_is_printed_on_one_line(
    cli: CommandLine, quick: Served, arguments: tuple[str, ...], complaint: str, code: int
) -> None:
    result = cli(*arguments, at=quick)
    last = result.stderr.splitlines()[-1]
    assert last.startswith(complaint)
    assert (result.stdout, result.exit_code) == ("", code)
    assert quick.control_plane.api_key not in result.output


def test_closed_pipe_is_not_reported_as_an_error(quick: Served) -> None:
    with started(*COMMAND, "projects", "list", **quick.environment) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        output = ended(process)
    assert (output.err, output.code) == ("", 141)


@pytest.mark.long
@pytest.mark.parametrize("stdout", UNWRITABLE)
def test_no_key_is_created_if_standard_output_is_unwritable(quick: Served, stdout: str) -> None:
    command = (*COMMAND, "api-keys", "create", "unwritable", "-o", "raw")
    output = redirected(stdout.format("1"), *command, **quick.environment)
    keys = quick.run(lambda neon: neon.api_keys.list())
    assert [key for key in keys if key.name == "unwritable"] == []
    [error] = output.err.splitlines()
    assert error.startswith("error: standard output cannot be written: ")
    assert output.code == 74


WITHOUT_ROOM = ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh")
"""A shell that starts a command whose files must stay empty."""


@pytest.mark.long
@pytest.mark.parametrize("is_refused", [False, True])
def test_key_whose_token_is_lost_is_revoked(quick: Served, *, is_refused: bool) -> None:
    if is_refused:
        quick.control_plane.inject(Fault(route="DELETE /api_keys/{key_id}", status=403, times=1))
    name = f"lost-{is_refused}"
    command = (*WITHOUT_ROOM, *COMMAND, "api-keys", "create", name)
    output = redirected(">file", *command, **quick.environment)
    keys = quick.run(lambda neon: neon.api_keys.list())
    left = [key.id for key in keys if key.name == name]
    lost, error = output.err.splitlines()
    if is_refused:
        [id] = left
        assert lost.startswith(f"the token of key {id} could not be printed, and the key could not")
        assert lost.endswith(f"to revoke it: neonctl-async api-keys revoke {id}")
    else:
        assert left == []
        assert re.fullmatch(r"key \d+ was revoked, because its token could not be printed", lost)
    assert error.startswith("error: standard output cannot be written: ")
    assert output.code == 74


@pytest.mark.long
def test_wait_continues_after_its_stderr_is_closed(slow: Served) -> None:
    with started(*COMMAND, "projects", "create", "--timeout", "0.5", **slow.environment) as process:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        assert process.wait() == 4
    [file] = Path.cwd().iterdir()
    assert file.name == "neonctl-async-pending-1.jsonl"


@pytest.mark.long
@pytest.mark.parametrize("stream", UNWRITABLE)
def test_wait_times_out_with_its_own_status_without_any_writable_stream(
    slow: Served, stream: str
) -> None:
    command = (*COMMAND, "projects", "create", "--timeout", "0.1")
    streams = f"{stream.format('1')} {stream.format('2')}"
    assert redirected(streams, *command, **slow.environment).code == 4
    [file] = Path.cwd().iterdir()
    assert file.name == "neonctl-async-pending-1.jsonl"


@pytest.mark.long
def test_command_needs_no_standard_input(quick: Served) -> None:
    id = quick.project().project.id
    delete = (*COMMAND, "projects", "delete", id, "-o", "raw")
    assert redirected("<&-", *delete, **quick.environment) == (f"{id}\n", "", 0)
    resume = (*COMMAND, "operations", "wait", "--resume", "-")
    output = redirected("<&-", *resume, **quick.environment)
    assert "Bad file descriptor" in output.err
    assert (output.out, output.code) == ("", 2)


IN_BACKGROUND = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
"""A shell that starts a command in the background, with SIGINT ignored."""


@pytest.mark.parametrize(("how", "number"), [((), signal.SIGINT), (IN_BACKGROUND, signal.SIGTERM)])
@pytest.mark.usefixtures("interruptible")
def test_interrupted_wait_prints_how_to_resume(
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


async def test_interrupted_request_warns_that_it_may_have_been_executed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    session = CommandSession(Screen(Output.TABLE), NeonClient(API_KEY))
    task = asyncio.create_task(session.send(asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert capsys.readouterr().err == ("the request was in progress: Neon may have executed it\n")


def test_pending_operations_are_printed_if_no_file_can_be_written(
    cli: CommandLine, slow: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    created = slow.project()
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = cli("operations", "wait", "--timeout", "0", "-p", created.project.id, at=slow)
    *_, complaint, named = result.stderr.splitlines()
    assert complaint.startswith("cannot write the file of pending operations")
    assert all(one.id in named for one in created.operations)
    assert result.exit_code == 4


@pytest.mark.long
def test_partially_written_file_is_removed(slow: Served) -> None:
    id = slow.project().project.id
    arguments = ("operations", "wait", "--timeout", "0", "-p", id)
    with started(*WITHOUT_ROOM, *COMMAND, *arguments, **slow.environment) as process:
        output = ended(process)
    assert "cannot write the file of pending operations" in output.err
    assert not list(Path.cwd().iterdir())
    assert output.code == 4


def test_retry_is_logged_on_one_line_without_control_characters(
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
    assert line.startswith("retrying in ")
    assert r"503 Service Unavailable: no\nroom \x1b]0;owned\x07 (request" in line


def test_wait_shows_progress_to_people_and_nothing_to_scripts(
    cli: CommandLine, quick: Served
) -> None:
    created = quick.project()
    ids = [one.id for one in created.operations]
    arguments = ("operations", "wait", *ids, "-p", created.project.id)
    assert "2 of 2 operations done" in cli(*arguments, at=quick).stderr
    assert cli(*arguments, "-o", "json", at=quick).stderr == ""
