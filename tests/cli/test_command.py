"""The behaviour that all commands share."""

import asyncio
import os
import pty
import re
import shlex
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TextIO
from uuid import uuid4

import pytest
from typer.core import TyperGroup

from neonctl_async.cli import demonstration
from neonctl_async.cli.app import ENTRIES, app, load
from neonctl_async.cli.exits import ExitCode
from neonctl_async.progress import WaitProgress
from neonctl_local import PostgresUnavailableError
from neonctl_local.server.databases.opening import Databases
from tests.cli.conftest import CommandLine
from tests.cli.process import COMMAND, ended, started
from tests.cli.served import Served
from tests.support.postgres import skip_without_postgres
from tests.support.records import SECRETS


def commands() -> Iterator[tuple[str, ...]]:
    """The names of all commands, each with its group."""
    for name in ENTRIES:
        loaded = load(name)
        if isinstance(loaded, TyperGroup):
            yield from ((name, inner) for inner in loaded.commands)
        else:
            yield (name,)


COMMANDS = list(commands())


def example_of(cli: CommandLine, command: tuple[str, ...]) -> list[str]:
    """The arguments of the example that the help of a command shows."""
    shown = " ".join(cli(*command, "--help").stdout.split())
    [example] = re.findall(r"Example: neonctl-async (.+)$", shown)
    arguments = shlex.split(os.path.expandvars(example))
    assert arguments[: len(command)] == list(command)
    return arguments


def test_help_fits_on_80_columns_and_names_every_value(cli: CommandLine) -> None:
    for command in COMMANDS:
        shown = cli(*command, "--help", COLUMNS="80").stdout
        assert max(map(len, shown.splitlines())) <= 80, command
        assert not re.search("<(str|int|float|list|file)", shown), command


def environment_of_examples(quick: Served) -> dict[str, str]:
    """Create what the examples need, and return the variables that name it."""
    created = quick.project()
    id = created.project.id
    Path("tenants.csv").write_text(f"project,branch\n{id},tenant\n")
    key = quick.run(lambda neon: neon.api_keys.create(key_name="example"))
    deleted_project, deleted_branch = quick.project().project.id, quick.branch(id, "x").branch.id
    quick.run(lambda neon: neon.projects.delete(deleted_project))
    quick.run(lambda neon: neon.branches.delete(id, deleted_branch))
    snapshot = quick.run(lambda neon: neon.snapshots.create(id, created.branch.id)).snapshot.id
    restored = quick.run(lambda neon: neon.snapshots.restore(id, snapshot)).branch.id
    return {
        "NEON_PROJECT_ID": id,
        "NEON_OPERATION_ID": created.operations[0].id,
        "NEON_BRANCH_ID": quick.branch(id, "example").branch.id,
        "NEON_ENDPOINT_ID": created.endpoints[0].id,
        "NEON_ROLE": quick.role(id, created.branch.id, "example").role.name,
        "NEON_ORG_ID": quick.organization().id,
        "NEON_KEY_ID": str(key.id),
        "NEON_SNAPSHOT_ID": snapshot,
        "NEON_RESTORED_BRANCH_ID": restored,
        "NEON_DELETED_PROJECT_ID": deleted_project,
        "NEON_DELETED_BRANCH_ID": deleted_branch,
    }


@pytest.mark.parametrize(
    "command",
    [
        one
        for one in COMMANDS
        if one not in {("local",), ("demo",), ("psql",), ("branches", "run")}  # have other tests
    ],
    ids=" ".join,
)
def test_example_of_every_command_works(
    cli: CommandLine, quick: Served, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    for name, value in environment_of_examples(quick).items():
        monkeypatch.setenv(name, value)
    result = cli(*example_of(cli, command), at=quick)
    is_served = "the local control plane does not serve this endpoint" not in result.stderr
    assert result.exit_code == (ExitCode.DONE if is_served else ExitCode.API_ERROR), result.output
    assert quick.control_plane.api_key not in result.output


def test_demo_creates_all_branches_without_a_key(cli: CommandLine) -> None:
    result = cli(*example_of(cli, ("demo",)), "--no-postgres")
    assert "20 branches ready in 5 projects" in result.stdout
    assert "40 of 40 operations done" in result.stderr
    assert not SECRETS.search(result.output_bytes)
    assert result.exit_code == 0


def test_demo_shows_progress_while_it_creates_branches(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    enter = WaitProgress.__enter__

    def show(progress: WaitProgress) -> WaitProgress:
        steps.append("display")
        return enter(progress)

    def interrupt(*_: object) -> NoReturn:
        steps.append("branches")
        raise asyncio.CancelledError

    monkeypatch.setattr(WaitProgress, "__enter__", show)
    monkeypatch.setattr(demonstration, "create_branches", interrupt)
    result = cli(*example_of(cli, ("demo",)), "--no-postgres")
    assert (steps, result.exit_code) == (["display", "branches"], ExitCode.INTERRUPTED)


def test_demo_without_postgres_prints_why_it_queries_no_branch(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_nothing(_directory: Path | None) -> NoReturn:
        raise PostgresUnavailableError("nothing was found")

    monkeypatch.setattr(f"{Databases.__module__}.find_installations", find_nothing)
    result = cli(*example_of(cli, ("demo",)))
    assert "20 branches ready in 5 projects" in result.stdout
    assert result.stdout.endswith("\nbranches were not queried: nothing was found\n")


def test_demo_without_the_driver_names_the_extra(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_any(_directory: Path | None) -> dict[int, object]:
        return {}  # the driver is imported before a Postgres starts

    monkeypatch.setattr(f"{Databases.__module__}.find_installations", find_any)
    monkeypatch.setattr(f"{Databases.__module__}.server_account", lambda: None)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    result = cli(*example_of(cli, ("demo",)))
    remedy = "the package 'asyncpg': pip install 'neonctl-local[postgres]'\n"
    assert f"branches were not queried: real databases need {remedy}" in result.stdout
    assert "20 branches ready in 5 projects" in result.stdout


@pytest.mark.postgres
@pytest.mark.scale
def test_demo_queries_each_branch_if_postgres_is_found(cli: CommandLine) -> None:
    skip_without_postgres()
    result = cli("demo", "--seconds", "0")
    assert "20 of 20 databases queried" in result.stdout
    assert not SECRETS.search(result.output_bytes)
    assert result.exit_code == 0


@pytest.mark.process
def test_local_serves_until_it_is_stopped(cli: CommandLine) -> None:
    with started(*COMMAND, *example_of(cli, ("local",))) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("export NEON_API_HOST=")
        process.send_signal(signal.SIGTERM)
        assert ended(process).code == 0


def test_colours_are_printed_only_to_terminals_that_allow_them(
    cli: CommandLine, quick: Served
) -> None:
    id = quick.project().project.id
    listing = ("operations", "list", "-p", id)
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    green = "\x1b[32mOK"
    assert green in cli(*listing, at=quick, **terminal).stdout
    assert green not in cli(*listing, at=quick, **terminal, NO_COLOR="1").stdout
    assert green not in cli(*listing, "--no-color", at=quick, **terminal).stdout
    assert "\x1b" not in cli(*listing, at=quick).stdout


def test_titles_of_a_record_are_bold(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    first = cli("projects", "get", id, at=quick, **terminal).stdout.splitlines()[0]
    assert first == f"\x1b[1mID        \x1b[0m{id}"


def test_forced_colours_do_not_fold_lines_in_a_pipe(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "40"}
    listed = cli("operations", "list", "-p", id, at=quick, **terminal).stdout
    assert len(listed.splitlines()) == 3
    waited = cli("branches", "create", "-p", id, "-o", "json", at=quick, **terminal)
    assert waited.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "reply", "code"), [((), "n", 130), ((), "y", 0), (("--yes",), "", 0)]
)
def test_deletion_needs_confirmation_on_a_terminal(
    quick: Served,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    reply: str,
    code: int,
) -> None:
    id = quick.project("asked").project.id
    for name, value in quick.environment.items():
        monkeypatch.setenv(name, value)
    with typing(f"{reply}\n") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(SystemExit) as end:
            app(["projects", "delete", id, *arguments])
    question = f"Delete project {id} and everything in it? [y/N]: "
    output = capsys.readouterr()
    assert (question in output.err) == bool(reply)
    assert output.out.startswith("Deleted") == (code == 0)
    assert end.value.code == code
    left = quick.run(lambda neon: neon.projects.list(search=id).collect())
    assert bool(left) == (code != 0)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("branches delete main", "error: no project: set --project"),
        ("branches delete absent -p {id}", "error: no branch of project {id} has the name"),
        ("branches reset main -p {id}", "error: branch {branch} has no parent: a root branch"),
        ("branches restore main -p {id}", "error: to restore a branch to its own earlier state"),
        ("branches delete main -p {name}", "Delete branch main of project {name}? [y/N]: "),
        ("api-keys revoke 1", "Revoke key 1 permanently? [y/N]: "),
    ],
)
def test_question_appears_unless_the_command_cannot_work(
    quick: Served,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    shown: str,
) -> None:
    for name, value in quick.environment.items():
        monkeypatch.setenv(name, value)
    created = quick.project(f"asks-{uuid4().hex}")
    names = {"id": created.project.id, "name": created.project.name, "branch": created.branch.id}
    with typing("n\n") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(SystemExit) as end:
            app([word.format(**names) for word in command.split()])
    asked = "[y/N]" in shown
    errors = capsys.readouterr().err
    assert errors.startswith(shown.format(**names))
    assert errors.endswith("[y/N]: nothing was changed\n") == asked
    assert (end.value.code == 130) == asked


@contextmanager
def typing(line: str) -> Generator[TextIO]:
    """A terminal on which somebody types a line."""
    ours, theirs = pty.openpty()
    os.write(ours, line.encode())
    try:
        with os.fdopen(theirs) as stdin:
            yield stdin
    finally:
        os.close(ours)
