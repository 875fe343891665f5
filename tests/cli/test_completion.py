"""Completion of names and ids, through the protocol of the shells."""

import socket
import threading
from collections.abc import Iterator

import pytest

from neonctl_async.cli import completion
from neonctl_async.cli.app import app
from neonctl_local import Fault
from tests.cli.conftest import CommandLine
from tests.cli.process import COMMAND, ended, started
from tests.cli.served import Served
from tests.cli.test_command import typing


def in_bash(*words: str) -> dict[str, str]:
    """Return the environment in which bash completes the last word."""
    return {
        "_NEONCTL_ASYNC_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("neonctl-async", *words)),
        "COMP_CWORD": str(len(words)),
    }


def in_zsh(*words: str) -> dict[str, str]:
    """Return the environment in which zsh completes the last word."""
    return {
        "_NEONCTL_ASYNC_COMPLETE": "complete_zsh",
        "_TYPER_COMPLETE_ARGS": " ".join(("neonctl-async", *words)),
    }


@pytest.fixture
def hanging_server() -> Iterator[str]:
    """Yield the base URL of a server that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/api/v2"


def test_branches_are_completed_in_bash(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "preview/1")
    quick.branch(project_id, "preview/2")
    quick.branch(project_id, "staging")
    result = cli(**in_bash("branches", "get", "-p", project_id, "prev"), at=quick)
    assert set(result.stdout.split()) == {"preview/1", "preview/2"}
    assert (result.stderr, result.exit_code) == ("", 0)


@pytest.mark.parametrize(
    "words",
    [
        ("branches", "prune", "--names-from", "-", "--pre"),
        ("operations", "wait", "--resume", "-", "--pro"),
    ],
)
def test_completion_does_not_read_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    for name, value in in_bash(*words).items():
        monkeypatch.setenv(name, value)
    with typing("unread\n") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(SystemExit):
            app([], prog_name="neonctl-async")
        assert stdin.readline() == "unread\n"
    assert capsys.readouterr().out.startswith(words[-1])


def test_branches_are_explained_in_zsh(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    quick.branch(created.project.id, "preview")
    env = in_zsh("branches", "delete", "ma") | {"NEON_PROJECT_ID": created.project.id}
    result = cli(**env, at=quick)
    assert f'"main":"{created.branch.id}"' in result.stdout
    assert "preview" not in result.stdout
    assert (result.stderr, result.exit_code) == ("", 0)


def test_ids_are_completed(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    words = ("branches", "get", "-p", created.project.id, created.branch.id[:-3])
    assert cli(**in_bash(*words), at=quick).stdout.split() == [created.branch.id]


def test_snapshots_are_completed(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    id = created.project.id
    quick.run(lambda neon: neon.snapshots.create(id, created.branch.id, name="friday"))
    result = cli(**in_bash("snapshots", "delete", "-p", id, "fri"), at=quick)
    assert result.stdout.split() == ["friday"]


def test_projects_are_completed_by_unique_names(cli: CommandLine, quick: Served) -> None:
    quick.project("completed-once")
    ids = {quick.project("completed-twice").project.id for _ in range(2)}
    once = cli(**in_bash("branches", "list", "-p", "completed-"), at=quick)
    assert once.stdout.split() == ["completed-once"]
    for id in ids:
        assert cli(**in_bash("projects", "get", id[:-1]), at=quick).stdout.split() == [id]


def test_name_that_needs_quotes_is_completed_by_its_id(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    branch_id = quick.branch(project_id, "two words $(id)").branch.id
    listed = cli(**in_bash("branches", "get", "-p", project_id, "''"), at=quick).stdout.split()
    assert set(listed) == {"main", branch_id}


def test_computes_are_completed_with_their_branch(cli: CommandLine, quick: Served) -> None:
    endpoint = quick.project().endpoints[0]
    words = ("endpoints", "start", "-p", endpoint.project_id, "ep-")
    result = cli(**in_zsh(*words), at=quick)
    assert f'"{endpoint.id}":"read_write of {endpoint.branch_id}"' in result.stdout


def test_databases_and_roles_of_the_branch_are_completed(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    project_id, owner = created.project.id, created.roles[0].name
    quick.branch(project_id, "preview")
    quick.role(project_id, created.branch.id, "only_on_main")
    options = ("-p", project_id, "--branch", "preview")
    databases = cli(**in_zsh("databases", "get", *options, "neo"), at=quick)
    assert f'"neondb":"owned by {owner}"' in databases.stdout
    roles = cli(**in_bash("roles", "reset-password", *options, "''"), at=quick)
    assert roles.stdout.split() == [owner]
    uri = ("connection-string", "preview", "-p", project_id, "--role", owner[:-1])
    assert cli(**in_bash(*uri), at=quick).stdout.split() == [owner]


def test_project_of_the_context_is_used(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "preview")
    cli("set-context", "--project-id", project_id)
    result = cli(**in_bash("branches", "create", "--parent", "pre"), at=quick)
    assert result.stdout.split() == ["preview"]


def test_project_may_be_a_name_in_the_form_of_an_id(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project("silent-moon-12345678").project.id
    quick.branch(project_id, "preview")
    words = ("branches", "get", "-p", "silent-moon-12345678", "pre")
    assert cli(**in_bash(*words), at=quick).stdout.split() == ["preview"]


@pytest.mark.parametrize(
    "words",
    [
        ("branches", "get", "x"),  # no project
        ("branches", "get", "-p", "missing", "x"),
        ("branches", "get", "-p", "late-frost-12345678", "x"),
        ("branches", "get", "-p", "", "x"),
        ("branches", "get", "--context-file", "missing", "x"),
    ],
    ids=" ".join,
)
def test_nothing_is_completed_without_a_message(
    cli: CommandLine, quick: Served, words: tuple[str, ...]
) -> None:
    result = cli(**in_bash(*words), at=quick)
    assert (result.stdout.strip(), result.stderr, result.exit_code) == ("", "", 0)


def test_failing_requests_are_not_reported(
    cli: CommandLine, quick: Served, caplog: pytest.LogCaptureFixture
) -> None:
    quick.control_plane.inject(Fault(route="GET /projects", status=403, times=1))
    result = cli(**in_bash("projects", "get", "x"), at=quick)
    assert (result.stdout.strip(), result.stderr, result.exit_code) == ("", "", 0)
    assert caplog.records == []


@pytest.mark.process
@pytest.mark.parametrize(
    "env",
    [
        {},
        {"NEON_API_KEY": "wrong", "NEON_API_HOST": "http://127.0.0.1:1/api/v2"},
        {"NEON_API_KEY": "wrong", "NEON_API_HOST": "not a url"},
    ],
    ids=["no key", "no server", "no host"],
)
def test_completion_is_silent_offline(env: dict[str, str]) -> None:
    with started(*COMMAND, **in_bash("projects", "get", "x"), **env) as process:
        output = ended(process)
    assert (output.out.strip(), output.err, output.code) == ("", "", 0)


def test_server_that_does_not_respond_is_given_up(
    cli: CommandLine, hanging_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completion, "TIMEOUT", 0.1)
    env = {"NEON_API_KEY": "key", "NEON_API_HOST": hanging_server}
    result = cli(**in_bash("projects", "get", "x"), **env, at=None)
    assert (result.stdout.strip(), result.stderr, result.exit_code) == ("", "", 0)


def test_slow_name_server_is_given_up(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def resolve_slowly(*_arguments: object, **_options: object) -> list[object]:
        answered.wait()
        return []

    monkeypatch.setattr(completion, "TIMEOUT", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", resolve_slowly)
    env = {"NEON_API_KEY": "key", "NEON_API_HOST": "https://neon.invalid/api/v2"}
    result = cli(**in_bash("projects", "get", "x"), **env, NEON_RATE_BUDGET="off", at=None)
    answered.set()
    assert (result.stdout.strip(), result.stderr, result.exit_code) == ("", "", 0)
