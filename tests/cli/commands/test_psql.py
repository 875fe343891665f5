"""psql gets the URI without the password, and the password in its environment."""

import os
import shutil
import signal
from pathlib import Path
from typing import TypeAlias

import pytest

from neonctl_async.cli.commands.psql import split
from neonctl_async.types import ConnectionUri, ProjectCreated
from neonctl_local import Durations, LocalControlPlane
from tests.cli.conftest import CommandLine
from tests.cli.process import COMMAND, Ended, ended, started
from tests.cli.served import Served, served
from tests.cli.test_command import example_of
from tests.support.postgres import skip_without_postgres

FAKE = """#!/bin/sh
printf '%s\\n' "$@" "$PGPASSWORD"
kill -PIPE $$
exit 9
"""
"""Prints its arguments and the password. SIGPIPE kills it, if its parent does not ignore that."""

Execution: TypeAlias = tuple[list[str], dict[str, str]]
"""The arguments after the URI, and the environment."""


@pytest.mark.parametrize(
    ("words", "branch", "arguments"),
    [
        ([], None, []),
        (["main"], "main", []),
        (["main", "-c", "SELECT 1"], "main", ["-c", "SELECT 1"]),
        (["-c", "SELECT 1"], None, ["-c", "SELECT 1"]),
    ],
)
def test_first_word_is_the_branch_unless_it_is_an_option(
    words: list[str], branch: str | None, arguments: list[str]
) -> None:
    assert split(words) == (branch, arguments)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on the PATH."""
    directory = tmp_path / "programs"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    return directory


def install(directory: Path, text: str) -> None:
    program = directory / "psql"
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)


def run_psql(at: Served, created: ProjectCreated, *arguments: str) -> Ended:
    env = {**at.environment, "NEON_PROJECT_ID": created.project.id}
    with started(*COMMAND, *arguments, **env) as process:
        return ended(process)


@pytest.mark.process
def test_password_is_in_the_environment_of_psql_and_not_in_its_arguments(
    cli: CommandLine, quick: Served, programs: Path
) -> None:
    install(programs, FAKE)
    created = quick.project()
    uri = created.connection_uri
    result = run_psql(quick, created, *example_of(cli, ("psql",)))
    assert result.out.splitlines() == [
        *("--dbname", uri.without_password, "--command", "SELECT version()"),
        uri.password.reveal(),
    ]
    assert (result.err, result.code) == ("", -signal.SIGPIPE)


@pytest.fixture
def executed(programs: Path, monkeypatch: pytest.MonkeyPatch) -> list[Execution]:
    """The runs of psql, which do not replace the process."""
    install(programs, FAKE)
    runs: list[Execution] = []

    def execve(_program: str, arguments: list[str], environment: dict[str, str]) -> None:
        runs.append((arguments[3:], environment))
        raise OSError(0, "not run")

    monkeypatch.setattr("os.execve", execve)
    return runs


def test_arguments_of_psql_may_be_empty(
    cli: CommandLine, quick: Served, executed: list[Execution]
) -> None:
    project_id = quick.project().project.id
    cli("psql", "-p", project_id, "main", "--", "--field-separator", "", at=quick)
    assert [arguments for arguments, _ in executed] == [["--field-separator", ""]]
    result = cli("psql", "-p", project_id, "", "--", "--list", at=quick)
    assert "is empty: set a value" in result.stderr
    assert len(executed) == 1


def test_uri_without_a_password_leaves_that_of_the_user(
    cli: CommandLine,
    quick: Served,
    executed: list[Execution],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def find_uri(*_: object, **__: object) -> ConnectionUri:
        return ConnectionUri("postgresql://ada@ep-a-1.neon.invalid/shop")

    monkeypatch.setattr("neonctl_async.cli.commands.psql.find_uri", find_uri)
    cli("psql", at=quick, PGPASSWORD="of-the-user")
    assert [environment["PGPASSWORD"] for _, environment in executed] == ["of-the-user"]


def test_variables_of_the_user_do_not_select_another_server(
    cli: CommandLine, quick: Served, executed: list[Execution]
) -> None:
    project_id = quick.project().project.id
    elsewhere = {"PGPORT": "6432", "PGHOSTADDR": "192.0.2.1", "PGSERVICE": "other"}
    cli("psql", "-p", project_id, at=quick, PGCLIENTENCODING="LATIN1", **elsewhere)
    [(_, environment)] = executed
    assert environment["PGCLIENTENCODING"] == "LATIN1"
    assert not elsewhere.keys() & environment.keys()


def test_missing_psql_is_an_error_without_a_request(
    cli: CommandLine, quick: Served, programs: Path
) -> None:
    assert programs.exists()
    before = quick.control_plane.requests_served
    result = cli("psql", "-p", "x", at=quick)
    assert result.stderr.startswith("error: psql was not found: install the client programs")
    assert (result.stdout, result.exit_code) == ("", 2)
    assert quick.control_plane.requests_served == before


def test_psql_that_cannot_be_run_is_an_error(
    cli: CommandLine, quick: Served, programs: Path
) -> None:
    install(programs, "#!/missing/interpreter\n")
    result = cli("psql", at=quick, NEON_PROJECT_ID=quick.project().project.id)
    assert result.stderr == f"error: {programs / 'psql'} cannot be run: No such file or directory\n"
    assert result.exit_code == 2
    assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN


@pytest.mark.postgres
@pytest.mark.skipif(shutil.which("psql") is None, reason="this machine has no psql")
def test_psql_connects_to_a_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_postgres()
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    control_plane = LocalControlPlane(durations=Durations(default=0), postgres=True)
    with served(control_plane) as at:
        created = at.project()
        query = "SELECT current_database()"
        result = run_psql(
            at, created, "psql", "main", "--pooled", "--", "-XAtc", query, "-v", "x=y"
        )
    assert (result.out, result.err, result.code) == ("neondb\n", "", 0)
