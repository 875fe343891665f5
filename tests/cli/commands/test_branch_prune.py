import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from neonctl_async.cli.app import app
from neonctl_local import Fault
from tests.cli.conftest import CommandLine
from tests.cli.process import COMMAND, ended, started
from tests.cli.served import Served
from tests.cli.test_command import typing
from tests.provisioning.helpers import DELETE

PRUNE = ("branches", "prune")


@pytest.fixture
def project_id(quick: Served) -> str:
    """A project with the branches ``main``, ``preview/1``, ``preview/2`` and ``other``."""
    id = quick.project().project.id
    for name in ("preview/1", "preview/2", "other"):
        quick.branch(id, name)
    return id


def names(quick: Served, project_id: str) -> set[str]:
    branches = quick.run(lambda neon: neon.branches.list(project_id).collect())
    return {branch.name for branch in branches}


def test_dry_run_shows_the_plan_and_deletes_nothing(
    cli: CommandLine, quick: Served, project_id: str
) -> None:
    result = cli(*PRUNE, "-p", project_id, "--match", "*", at=quick)
    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        *("Name", "other", "preview/2", "preview/1", "main"),
    ]
    assert result.stdout.count("to delete") == 3
    assert "kept" in result.stdout.splitlines()[-1]
    assert "it is the default branch" in result.stdout
    assert result.stderr == "branches to delete: 3; --apply deletes them\n"
    assert (len(names(quick, project_id)), result.exit_code) == (4, 0)


def test_apply_deletes_the_selected_branches_and_waits(
    cli: CommandLine, quick: Served, project_id: str
) -> None:
    result = cli(
        *PRUNE, "-p", project_id, "--prefix", "preview/", "--apply", "-o", "jsonl", at=quick
    )
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {(row["name"], row["result"], row["reason"]) for row in rows} == {
        ("preview/1", "deleted", None),
        ("preview/2", "deleted", None),
    }
    assert (result.stderr, result.exit_code) == ("", 0)
    assert names(quick, project_id) == {"main", "other"}
    again = cli(*PRUNE, "-p", project_id, "--prefix", "preview/", "--apply", at=quick)
    assert (again.stderr, again.exit_code) == ("branches deleted: 0\n", 0)


def test_raw_output_has_no_kept_branch(cli: CommandLine, quick: Served, project_id: str) -> None:
    branches = quick.run(lambda neon: neon.branches.list(project_id).collect())
    result = cli(*PRUNE, "-p", project_id, "--match", "*", "--apply", "-o", "raw", at=quick)
    unwanted = {branch.id for branch in branches if branch.name != "main"}
    assert set(result.stdout.split()) == unwanted


def test_age_and_last_use_are_criteria(cli: CommandLine, quick: Served, project_id: str) -> None:
    result = cli(*PRUNE, "-p", project_id, "--prefix", "preview/", "--older-than", "7d", at=quick)
    assert result.stdout.count("less than 7 days") == 2
    result = cli(*PRUNE, "-p", project_id, "--name", "other", "--idle-for", "30m", at=quick)
    assert "less than 30 minutes" in result.stdout
    assert result.stderr == "branches to delete: 0\n"


def test_names_come_from_options_and_files(
    cli: CommandLine, quick: Served, project_id: str, tmp_path: Path
) -> None:
    file = tmp_path / "closed.txt"
    file.write_text("preview/2\n\n  preview/3  \n")
    arguments = ("--name", "preview/1", "--names-from", str(file), "--apply", "-o", "raw")
    result = cli(*PRUNE, "-p", project_id, *arguments, at=quick)
    assert len(result.stdout.split()) == 2
    assert result.stderr == "names without a branch: preview/3\n"
    assert names(quick, project_id) == {"main", "other"}


@pytest.mark.parametrize("option", ["closed.txt", "-"])
def test_names_may_have_the_marks_of_windows(
    cli: CommandLine, quick: Served, project_id: str, option: str
) -> None:
    text = "\ufeffpreview/1\r\npreview/2\r\n"
    Path("closed.txt").write_text(text, encoding="utf-8")
    result = cli(*PRUNE, "-p", project_id, "--names-from", option, at=quick, typed=text)
    assert result.stdout.count("to delete") == 2
    assert result.stderr == "branches to delete: 2; --apply deletes them\n"


def test_names_are_read_from_standard_input(
    cli: CommandLine, quick: Served, project_id: str
) -> None:
    arguments = (*PRUNE, "-p", project_id, "--names-from", "-", "--apply")
    assert cli(*arguments, at=quick, typed="\n").exit_code == 0
    assert len(names(quick, project_id)) == 4
    assert cli(*arguments, at=quick, typed="other\n").exit_code == 0
    assert names(quick, project_id) == {"main", "preview/1", "preview/2"}


def test_branches_with_other_names_are_shown_on_request(
    cli: CommandLine, quick: Served, project_id: str
) -> None:
    result = cli(*PRUNE, "-p", project_id, "--name", "other", "--all", at=quick)
    assert result.stdout.count("its name is not one of the given names") == 3


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "no criterion: set at least one of --prefix"),
        (("--apply",), "no criterion: set at least one of --prefix"),
        (("--older-than", "7"), "'7' is not a duration"),
        (("--names-from", "missing.txt"), "missing.txt cannot be read"),
        (("--prefix", "", "--apply"), "--prefix is empty"),
    ],
)
def test_missing_or_wrong_criterion_is_a_usage_error(
    cli: CommandLine, quick: Served, project_id: str, arguments: tuple[str, ...], error: str
) -> None:
    result = cli(*PRUNE, "-p", project_id, *arguments, at=quick)
    assert error in result.stderr
    assert (result.stdout, result.exit_code) == ("", 2)
    assert len(names(quick, project_id)) == 4


def test_failed_deletion_is_shown_and_sets_the_exit_code(
    cli: CommandLine, quick: Served, project_id: str
) -> None:
    fault = quick.control_plane.inject(Fault(route=DELETE, status=403, message="no", times=1))
    result = cli(*PRUNE, "-p", project_id, "--prefix", "preview/", "--apply", at=quick)
    assert fault.fired == 1
    assert "403 Forbidden: no" in result.stdout
    assert result.stderr.endswith("\nerror: 1 of 2 branches could not be deleted\n")
    assert result.exit_code == 3
    assert len(names(quick, project_id)) == 3


def test_failed_operation_sets_the_exit_code(
    cli: CommandLine, quick: Served, project_id: str
) -> None:
    quick.fail_next("delete_timeline")
    result = cli(*PRUNE, "-p", project_id, "--name", "other", "--apply", at=quick)
    assert "other" in result.stdout
    assert "error: 1 of 1 operations failed" in result.stderr
    assert result.exit_code == 1


def test_no_wait_returns_before_the_operations_finish(cli: CommandLine, slow: Served) -> None:
    project_id = slow.project().project.id
    slow.branch(project_id, "other")
    arguments = (*PRUNE, "-p", project_id, "--name", "other", "--apply")
    assert cli(*arguments, "--no-wait", at=slow).exit_code == 0
    slow.branch(project_id, "other")
    result = cli(*arguments, "--timeout", "0.01", at=slow)
    assert "other" in result.stdout
    assert result.exit_code == 4


@pytest.mark.parametrize(
    ("reply", "more", "code"), [("n", (), 130), ("y", (), 0), ("", ("--yes",), 0)]
)
def test_user_confirms_the_shown_branches(
    quick: Served,
    project_id: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reply: str,
    more: tuple[str, ...],
    code: int,
) -> None:
    for name, value in quick.environment.items():
        monkeypatch.setenv(name, value)
    with typing(f"{reply}\n") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(SystemExit) as end:
            app([*PRUNE, "-p", project_id, "--prefix", "preview/", "--apply", *more])
    output = capsys.readouterr()
    question = f"Delete 2 branches of project {project_id}? [y/N]: "
    assert (question in output.err, "preview/1 (br-" in output.err) == (bool(reply), bool(reply))
    assert end.value.code == code
    assert len(names(quick, project_id)) == (4 if code else 2)


@pytest.fixture
def confirm(
    quick: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run ``branches prune --apply``, and confirm it. ``meanwhile`` runs before that."""
    for name, value in quick.environment.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, meanwhile: Callable[[], object] = lambda: None) -> str:
        async def read_line() -> str:
            await asyncio.to_thread(meanwhile)
            return "y\n"

        with typing("") as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            monkeypatch.setattr("neonctl_async.cli.session.read_line", read_line)
            with pytest.raises(SystemExit) as end:
                app([*PRUNE, *arguments, "--apply"])
        output = capsys.readouterr()
        assert (end.value.code, "to delete" in output.out) == (0, False)
        return output.out + output.err

    return run


def test_confirmed_run_shows_everything_that_the_dry_run_has_found(
    project_id: str, confirm: Callable[..., str]
) -> None:
    names = ("--name", "main", "--name", "other", "--name", "gone")
    output = confirm("-p", project_id, *names, "--all")
    assert [line.split()[:2] for line in output.splitlines()[:5]] == [
        ["Name", "Result"],
        ["other", "deleted"],
        ["main", "kept"],
        ["preview/1", "kept"],
        ["preview/2", "kept"],
    ]
    assert output.count("its name is not one of the given names") == 2
    assert "it is the default branch" in output
    assert output.endswith("names without a branch: gone\n")


def test_branch_that_takes_the_name_of_a_shown_one_is_kept(
    quick: Served, project_id: str, confirm: Callable[..., str]
) -> None:
    def replace_other() -> None:
        [old] = quick.run(lambda neon: neon.branches.list(project_id, search="other").collect())
        quick.run(lambda neon: neon.branches.delete(project_id, old.id))
        quick.branch(project_id, "other")

    output = confirm("-p", project_id, "--match", "[op]*", meanwhile=replace_other)
    assert names(quick, project_id) == {"main", "other"}
    assert output.count(" deleted") == 3
    assert "names without a branch" not in output


@pytest.mark.long
@pytest.mark.process
@pytest.mark.usefixtures("interruptible")
def test_interrupted_prune_reports_what_it_has_deleted(quick: Served, project_id: str) -> None:
    # A parent is deleted only once the command knows that its child is deleted.
    parent = quick.run(lambda neon: neon.branches.find(project_id, "preview/1")).id
    name = "preview/1/child"
    quick.run(lambda neon: neon.branches.create(project_id, name=name, parent_id=parent))
    hanging = Fault(route=DELETE, branch="preview/1", hang=True, times=1)
    fault = quick.control_plane.inject(hanging)
    environment = quick.environment | {"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    command = (*COMMAND, *PRUNE, "-p", project_id, "--prefix", "preview/1", "--apply")
    with started(*command, **environment) as process:
        while not fault.fired:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        result = ended(process)
    assert "deleted 1 of 2 branches: preview/1/child; in progress" in result.err
    assert "in progress, so perhaps deleted: preview/1\n" in result.err
    assert result.code == 130
