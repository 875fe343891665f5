"""The ``.neon`` file, which Neon's own command line also reads and writes."""

import json
import os
from pathlib import Path

import pytest

from neonctl_async.cli import context
from neonctl_async.cli.context import Context
from tests.cli.conftest import CommandLine
from tests.cli.served import Served


def write(path: Path, **keys: object) -> None:
    path.write_text(json.dumps(keys))


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory two levels below a home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    directory = tmp_path / "shop" / "backend"
    directory.mkdir(parents=True)
    monkeypatch.chdir(directory)
    return directory


def test_nearest_file_is_used(below: Path) -> None:
    write(below.parent / ".neon", projectId="outer")
    assert context.load(None).project_id == "outer"
    write(below / ".neon", projectId="inner", orgId="org", branch="main", later={"x": 1})
    assert context.load(None) == Context(project_id="inner", org_id="org", branch="main")


def test_file_of_the_home_directory_is_not_used(below: Path) -> None:
    write(below.parents[1] / ".neon", projectId="home")
    assert context.load(None) == Context()


def test_directory_of_that_name_is_skipped(below: Path) -> None:
    (below / ".neon").mkdir()
    write(below.parent / ".neon", projectId="outer")
    assert context.load(None).project_id == "outer"


def test_branch_belongs_to_the_project_of_the_file(below: Path) -> None:
    write(below / ".neon", projectId="shop", branchId="br-old-1-2")
    assert context.load(None).branch_of("shop") == "br-old-1-2"
    assert context.load(None).branch_of("other") is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"{", "is not a context file: Input data was truncated"),
        (b"[]", "is not a context file: Expected `object`, got `array`"),
        (b'{"projectId": 5}', "is not a context file: Expected `str | null`, got `int`"),
        (b"\xff", "is not a context file: JSON is malformed: invalid character"),
        (b'{"a": "\xff"}', "is not a context file: "),
        (b" " * 70_000, "is larger than 65536 bytes: it is no context file"),
    ],
)
def test_unusable_file_is_reported(
    cli: CommandLine, quick: Served, below: Path, content: bytes, complaint: str
) -> None:
    (below / ".neon").write_bytes(content)
    result = cli("branches", "list", at=quick)
    assert result.stderr.startswith(f"error: {below / '.neon'} {complaint}")
    assert len(result.stderr.splitlines()) == 1
    assert (result.stdout, result.exit_code) == ("", 2)


def test_unusable_file_does_not_matter_if_a_project_is_given(
    cli: CommandLine, quick: Served, below: Path
) -> None:
    (below / ".neon").write_text("{")
    project_id = quick.project().project.id
    assert cli("branches", "list", "-p", project_id, at=quick).exit_code == 0


def test_project_of_the_file_is_the_default(cli: CommandLine, quick: Served, below: Path) -> None:
    created, other = quick.project(), quick.project()
    write(below / ".neon", projectId=created.project.id)

    def listed(*arguments: str, **env: str) -> list[str]:
        return cli("branches", "list", "-o", "raw", *arguments, at=quick, **env).stdout.split()

    assert listed() == [created.branch.id]
    assert listed(NEON_PROJECT_ID=other.project.id) == [other.branch.id]
    assert listed("-p", other.project.id) == [other.branch.id]


def test_empty_variable_does_not_select_the_project_of_the_file(
    cli: CommandLine, quick: Served, below: Path
) -> None:
    created = quick.project()
    write(below / ".neon", projectId=created.project.id)
    result = cli("branches", "list", at=quick, NEON_PROJECT_ID="")
    assert result.stderr == (
        "error: NEON_PROJECT_ID is empty: set a value, or unset it to use the project of the "
        ".neon file\n"
    )
    assert (result.stdout, result.exit_code) == ("", 2)
    named = cli("branches", "list", "-p", created.project.id, at=quick, NEON_PROJECT_ID="")
    assert named.exit_code == 0


def test_context_file_option_selects_another_file(
    cli: CommandLine, quick: Served, below: Path
) -> None:
    created = quick.project()
    write(below / ".neon", projectId="missing-project-12345678")
    write(below / "staging.json", projectId=created.project.id)
    arguments = ("branches", "list", "-o", "raw", "--context-file", "staging.json")
    assert cli(*arguments, at=quick).stdout.split() == [created.branch.id]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("missing", "missing cannot be read: No such file or directory"),
        (".", ". is not a file: expected a JSON file like .neon"),
        ("pipe", "pipe is not a file: expected a JSON file like .neon"),
    ],
)
def test_selected_file_must_be_readable(
    cli: CommandLine, quick: Served, below: Path, name: str, complaint: str
) -> None:
    os.mkfifo(below / "pipe")
    result = cli("branches", "list", "--context-file", name, at=quick)
    assert result.stderr == f"error: {complaint}\n"
    assert result.exit_code == 2


def test_removed_current_directory_has_no_context(below: Path) -> None:
    below.rmdir()
    assert context.load(None) == Context()
