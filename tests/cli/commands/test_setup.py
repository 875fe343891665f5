"""The account, and the context of a directory."""

import json
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.cli.served import Served


def content(name: str = ".neon") -> object:
    return json.loads(Path(name).read_text())


def test_account_of_the_key_is_shown(cli: CommandLine, quick: Served) -> None:
    user = quick.run(lambda neon: neon.users.me())
    lines = cli("me", at=quick).stdout.splitlines()
    assert lines[0].split() == ["ID", user.id]
    assert lines[1].split() == ["Email", user.email]
    assert cli("me", "-o", "raw", at=quick).stdout == f"{user.id}\n"


def test_context_is_written_without_a_key(cli: CommandLine) -> None:
    arguments = ("--project-id", "late-frost-12345678", "--org-id", "org-x", "--branch", "main")
    result = cli("set-context", *arguments)
    assert result.stdout.splitlines() == [
        "Project       late-frost-12345678",
        "Organization  org-x",
        "Branch        main",
    ]
    assert result.stderr == f"wrote {Path.cwd() / '.neon'}\n"
    assert content() == {"projectId": "late-frost-12345678", "orgId": "org-x", "branch": "main"}
    assert Path(".neon").read_text().endswith("}\n")


def test_id_of_a_branch_has_the_key_that_all_versions_read(cli: CommandLine) -> None:
    arguments = ("--project-id", "late-frost-12345678", "--branch", "br-late-frost-12345678")
    cli("set-context", *arguments)
    assert content() == {"projectId": "late-frost-12345678", "branchId": "br-late-frost-12345678"}


def test_name_of_a_branch_that_looks_like_an_id_is_written_as_its_id(
    cli: CommandLine, quick: Served
) -> None:
    project_id = quick.project("context-branch").project.id
    name = "br-pull-request-12"
    created = quick.run(lambda neon: neon.branches.create(project_id, name=name, wait=True))
    for branch in (name, created.branch.id):
        cli("set-context", "--project-id", project_id, "--branch", branch, at=quick)
        assert content() == {"projectId": project_id, "branchId": created.branch.id}


def test_branch_that_looks_like_an_id_and_does_not_exist_writes_no_file(
    cli: CommandLine, quick: Served
) -> None:
    project_id = quick.project("context-missing").project.id
    arguments = ("--project-id", project_id, "--branch", "br-pull-request-13")
    result = cli("set-context", *arguments, at=quick)
    assert "no branch of project" in result.stderr
    assert (result.exit_code, list(Path().iterdir())) == (3, [])


@pytest.mark.parametrize("place", ["home", "root"])
def test_file_that_would_never_be_read_is_not_written(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place == "home":
        monkeypatch.setenv("HOME", str(Path.cwd()))
    else:
        monkeypatch.chdir(Path.cwd().anchor)
    result = cli("set-context", "--project-id", "late-frost-12345678")
    assert "would never be read: commands ignore the file of the home directory" in result.stderr
    assert "or pass --context-file" in result.stderr
    assert (result.stdout, result.exit_code) == ("", 2)
    assert not Path(".neon").exists()


def test_context_file_in_the_home_directory_can_be_named(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(Path.cwd()))
    arguments = ("--project-id", "late-frost-12345678", "--context-file", ".neon")
    assert cli("set-context", *arguments).exit_code == 0
    assert content() == {"projectId": "late-frost-12345678"}


def test_project_is_found_by_its_name(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project("context").project.id
    cli("set-context", "--project-id", "context", at=quick)
    assert content() == {"projectId": project_id}


def test_unknown_name_writes_no_file(cli: CommandLine, quick: Served) -> None:
    result = cli("set-context", "--project-id", "Quetzalcoatl", at=quick)
    assert "has the name or the id 'Quetzalcoatl'" in result.stderr
    assert result.exit_code == 3
    assert list(Path().iterdir()) == []


def test_context_is_replaced_and_other_keys_are_kept(cli: CommandLine) -> None:
    before = {"projectId": "old", "branchId": "br-x", "orgId": "org-x", "team": {"name": "a"}}
    Path(".neon").write_text(json.dumps(before))
    Path(".neon").chmod(0o640)
    cli("set-context", "--project-id", "late-frost-12345678")
    assert content() == {"team": {"name": "a"}, "projectId": "late-frost-12345678"}
    assert stat.S_IMODE(Path(".neon").stat().st_mode) == 0o640
    assert [path.name for path in Path().iterdir()] == [".neon"]


def test_command_without_options_clears_the_context(cli: CommandLine) -> None:
    Path(".neon").write_text('{"projectId": "old", "later": 1}')
    result = cli("set-context")
    assert (result.stdout, result.exit_code) == ("", 0)
    assert content() == {"later": 1}


def test_branch_without_its_project_is_a_usage_error(cli: CommandLine) -> None:
    Path(".neon").write_text('{"projectId": "late-frost-12345678"}')
    result = cli("set-context", "--branch", "main")
    assert "--branch: also set --project-id, its project" in " ".join(result.stderr.split())
    assert result.exit_code == 2
    assert content() == {"projectId": "late-frost-12345678"}


def test_symbolic_link_stays_one(cli: CommandLine) -> None:
    Path("shared.json").write_text("{}")
    Path(".neon").symlink_to("shared.json")
    cli("set-context", "--project-id", "late-frost-12345678")
    assert Path(".neon").is_symlink()
    assert content("shared.json") == {"projectId": "late-frost-12345678"}


def test_nearest_file_is_changed(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".neon").write_text("{}")
    Path("backend").mkdir()
    monkeypatch.chdir("backend")
    cli("set-context", "--project-id", "late-frost-12345678")
    assert content("../.neon") == {"projectId": "late-frost-12345678"}
    assert list(Path().iterdir()) == []


def test_context_file_can_be_chosen(cli: CommandLine) -> None:
    arguments = ("--project-id", "late-frost-12345678", "--context-file", "staging.json")
    result = cli("set-context", *arguments)
    assert content("staging.json") == {"projectId": "late-frost-12345678"}
    assert result.stderr == "wrote staging.json\n"


@pytest.mark.parametrize(
    ("ignored", "is_hinted"), [("", True), ("*.log\n.neon\n", False), ("/.neon\n", False)]
)
def test_file_that_git_does_not_ignore_is_mentioned(
    cli: CommandLine, ignored: str, *, is_hinted: bool
) -> None:
    Path(".git").mkdir()
    Path(".gitignore").write_text(ignored)
    hint = "add .neon to .gitignore: others may use another project\n"
    first = cli("set-context", "--project-id", "late-frost-12345678")
    assert (hint in first.stderr) == is_hinted
    assert hint not in cli("set-context", "--project-id", "late-frost-12345678").stderr


def test_file_that_is_no_context_is_not_overwritten(cli: CommandLine) -> None:
    Path(".neon").write_text("secrets")
    result = cli("set-context", "--project-id", "late-frost-12345678")
    assert "is not a context file: " in result.stderr
    assert result.stderr.endswith(": correct the file, or remove it\n")
    assert (result.stdout, result.exit_code) == ("", 2)
    assert Path(".neon").read_text() == "secrets"


def test_file_that_cannot_be_written_is_reported(cli: CommandLine) -> None:
    arguments = ("--project-id", "late-frost-12345678", "--context-file", "missing/neon.json")
    result = cli("set-context", *arguments)
    assert result.stderr == (
        "error: missing/neon.json cannot be written: No such file or directory\n"
    )
    assert (result.stdout, result.exit_code) == ("", 2)
