"""``neonctl-async fleet``: plan and apply the tenants of a file."""

import json
import os
import re
import stat
from pathlib import Path
from uuid import uuid4

import pytest

from neonctl_async.cli.app import app
from neonctl_async.provisioning.fleet.tenants import EXPECTED
from neonctl_local import Fault
from tests.cli.commands.test_branch_prune import names
from tests.cli.conftest import CommandLine
from tests.cli.served import Served
from tests.cli.test_command import typing
from tests.support.records import SECRETS


@pytest.fixture
def project() -> str:
    """The name of a project that does not exist."""
    return f"fleet-{uuid4().hex[:8]}"


@pytest.fixture
def file(project: str) -> str:
    """A file with two tenants in this project."""
    lines = f"project,branch,region\n{project},production,aws-us-east-2\n{project},staging,\n"
    Path("tenants.csv").write_text(lines)
    return "tenants.csv"


def rows(output: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in output.splitlines()]


def test_plan_and_apply_show_a_row_per_tenant(
    cli: CommandLine, quick: Served, project: str, file: str
) -> None:
    assert cli("fleet", "plan", file, "-o", "raw", at=quick).stdout == ""
    planned = cli("fleet", "plan", file, at=quick)
    assert [line.split() for line in planned.stdout.splitlines()[1:]] == [
        [project, "production", "create"],
        [project, "staging", "create"],
    ]
    assert planned.stderr == (
        "2 tenants: 2 to create, 0 to adopt, 0 that differ, 0 extra; 1 project to create\n"
    )
    applied = cli("fleet", "apply", file, "-o", "jsonl", at=quick)
    assert {(row["branch"], row["status"]) for row in rows(applied.stdout)} == {
        ("production", "created"),
        ("staging", "created"),
    }
    assert applied.stderr.endswith("2 of 2 tenants are done: 2 created, 0 adopted\n")
    again = cli("fleet", "apply", file, "-o", "raw", at=quick)
    assert again.stdout.split() == [row["branch_id"] for row in rows(applied.stdout)]
    assert {planned.exit_code, applied.exit_code, again.exit_code} == {0}


def test_differing_and_extra_branches_are_reported_and_kept(
    cli: CommandLine, quick: Served, project: str, file: str
) -> None:
    project_id = quick.project(project).project.id
    quick.branch(project_id, "staging")
    quick.branch(project_id, "foreign")
    planned = cli("fleet", "plan", file, "-o", "jsonl", at=quick)
    assert [(row["branch"], row["status"], row["details"]) for row in rows(planned.stdout)] == [
        ("production", "create", ""),
        ("staging", "differ", "it has no read_write compute"),
        ("foreign", "extra", ""),
    ]
    assert {row["project"] for row in rows(planned.stdout)} == {project}
    _, _, staging, _ = cli("fleet", "plan", file, at=quick).stdout.splitlines()
    assert staging.endswith("  it has no read_write compute")  # long texts widen no column
    applied = cli("fleet", "apply", file, "-o", "jsonl", at=quick)
    assert [(row["branch"], row["status"]) for row in rows(applied.stdout)] == [
        ("production", "created"),
        ("staging", "failed"),
    ]
    assert f"{project}/staging: branch {project}/staging exists, but differs" in applied.stderr
    assert applied.exit_code == 1


def test_update_is_planned_and_applied(
    cli: CommandLine, quick: Served, project: str, file: str
) -> None:
    Path("larger.csv").write_text(f"project,branch,max_cu\n{project},staging,2\n")
    Path(file).write_text(f"project,branch,region,max_cu\n{project},staging,aws-us-east-2,1\n")
    assert cli("fleet", "apply", file, at=quick).exit_code == 0
    planned = cli("fleet", "plan", "larger.csv", "-o", "jsonl", at=quick)
    [row] = rows(planned.stdout)
    assert row["status"] == "update"
    assert row["details"].startswith("max_cu is 1.0 instead of 2.0 (compute ep-")
    refused = cli("fleet", "apply", "larger.csv", at=quick)
    assert "apply the fleet with --update" in refused.stderr
    updated = cli("fleet", "apply", "larger.csv", "--update", "-o", "jsonl", at=quick)
    assert [one["status"] for one in rows(updated.stdout)] == ["updated"]
    assert (refused.exit_code, updated.exit_code) == (1, 0)


def test_prune_deletes_what_the_file_lacks_after_it_has_named_it(
    cli: CommandLine, quick: Served, project: str, file: str
) -> None:
    project_id = quick.project(project).project.id
    quick.branch(project_id, "foreign")
    precious = quick.branch(project_id, "precious").branch.id
    quick.run(lambda neon: neon.branches.update(project_id, precious, protected=True))
    dry = cli("fleet", "apply", file, "--prune", at=quick)
    assert "would delete foreign (br-" in dry.stderr
    assert "it is protected" in dry.stderr
    assert "branches to delete: 1; --yes deletes them" in dry.stderr
    tenants = {"main", "production", "staging"}
    assert names(quick, project_id) == {*tenants, "foreign", "precious"}
    pruned = cli("fleet", "apply", file, "--prune", "--yes", "-o", "jsonl", at=quick)
    assert [(row["branch"], row["status"]) for row in rows(pruned.stdout)] == [
        ("production", "adopted"),
        ("staging", "adopted"),
        ("foreign", "deleted"),
    ]
    assert {row["project"] for row in rows(pruned.stdout)} == {project}
    assert names(quick, project_id) == {*tenants, "precious"}
    assert (dry.exit_code, pruned.exit_code) == (0, 0)


def test_plan_names_what_prune_would_delete_and_keep(
    cli: CommandLine, quick: Served, project: str, file: str
) -> None:
    project_id = quick.project(project).project.id
    quick.branch(project_id, "foreign")
    precious = quick.branch(project_id, "precious").branch.id
    quick.run(lambda neon: neon.branches.update(project_id, precious, protected=True))
    planned = cli("fleet", "plan", file, "--prune", "-o", "jsonl", at=quick)
    assert [(row["branch"], row["status"], row["details"]) for row in rows(planned.stdout)] == [
        ("production", "create", ""),
        ("staging", "create", ""),
        ("foreign", "to delete", ""),
        ("precious", "kept", "it is protected"),
    ]
    assert {row["project"] for row in rows(planned.stdout)} == {project}
    assert planned.stderr.endswith("branches to delete: 1\n")
    assert names(quick, project_id) == {"main", "foreign", "precious"}
    assert planned.exit_code == 0


def test_incomplete_fleet_prunes_nothing(
    cli: CommandLine, quick: Served, project: str, file: str
) -> None:
    project_id = quick.project(project).project.id
    quick.branch(project_id, "foreign")
    quick.fail_next("create_branch")
    applied = cli("fleet", "apply", file, "--prune", "--yes", at=quick)
    assert "no branch was deleted, because the fleet is not complete" in applied.stderr
    assert "foreign" in names(quick, project_id)
    assert applied.exit_code == 1


@pytest.mark.parametrize(("reply", "code"), [("n", 130), ("y", 0)])
def test_prune_asks_on_a_terminal_before_anything_is_created(
    quick: Served,
    project: str,
    file: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reply: str,
    code: int,
) -> None:
    project_id = quick.project(project).project.id
    quick.branch(project_id, "foreign")
    for name, value in quick.environment.items():
        monkeypatch.setenv(name, value)
    with typing(f"{reply}\n") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(SystemExit) as end:
            app(["fleet", "apply", file, "--prune"])
    shown = capsys.readouterr().err
    assert "foreign (br-" in shown
    assert "Delete 1 branch of the projects of the fleet? [y/N]: " in shown
    assert end.value.code == code
    expected = {"main", "foreign"} if code else {"main", "production", "staging"}
    assert names(quick, project_id) == expected


def test_project_that_cannot_be_read_is_reported_by_plan(
    cli: CommandLine, quick: Served, project: str, file: str
) -> None:
    quick.project(project)
    listing = "GET /projects/{project_id}/branches"
    quick.control_plane.inject(Fault(route=listing, status=404, times=1))
    planned = cli("fleet", "plan", file, "-o", "jsonl", at=quick)
    assert [row["status"] for row in rows(planned.stdout)] == ["failed", "failed"]
    assert planned.stderr.startswith("2 tenants: 0 to create, 0 to adopt, ")
    assert planned.exit_code == 1


def test_failed_canary_skips_the_rest(
    cli: CommandLine, quick: Served, project: str, file: str
) -> None:
    quick.project(project)
    quick.fail_next("create_branch")
    applied = cli("fleet", "apply", file, "--canary", "1", "-o", "jsonl", at=quick)
    assert [row["status"] for row in rows(applied.stdout)] == ["failed", "skipped"]
    assert applied.exit_code == 1


def test_uris_are_written_to_a_private_file_only(
    cli: CommandLine, quick: Served, project: str, file: str
) -> None:
    uris = Path("uris.jsonl")
    uris.write_text("old\n")
    uris.chmod(0o644)
    result = cli("fleet", "apply", file, "--uris", str(uris), "--pooled", at=quick)
    assert result.exit_code == 0
    assert not SECRETS.search(result.output_bytes)
    assert stat.S_IMODE(uris.stat().st_mode) == 0o600
    written = rows(uris.read_text())
    assert [(row["project"], row["branch"]) for row in written] == [
        (project, "production"),
        (project, "staging"),
    ]
    assert all("-pooler." in row["connection_uri"] for row in written)
    assert sorted(path.name for path in Path().iterdir()) == ["tenants.csv", "uris.jsonl"]


def test_unwritable_file_of_uris_is_an_output_error(
    cli: CommandLine, quick: Served, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_path: Path, _target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    result = cli("fleet", "apply", file, "--uris", "uris.jsonl", "-o", "jsonl", at=quick)
    assert [row["status"] for row in rows(result.stdout)] == ["created", "created"]
    assert "error: cannot write uris.jsonl: No space left on device" in result.stderr
    assert result.exit_code == 74
    assert sorted(path.name for path in Path().iterdir()) == ["tenants.csv"]


@pytest.mark.parametrize("kind", ["link", "pipe", "tenants"])
def test_uris_replace_only_a_regular_file(
    cli: CommandLine, quick: Served, file: str, kind: str
) -> None:
    uris = Path(file if kind == "tenants" else "uris")
    if kind == "link":
        uris.symlink_to("/dev/stdout")
    elif kind == "pipe":
        os.mkfifo(uris)
    kept = uris.lstat().st_ino
    before = quick.control_plane.requests_served
    result = cli("fleet", "apply", file, "--uris", str(uris), at=quick)
    assert result.exit_code == 2
    assert uris.name in result.stderr
    assert uris.lstat().st_ino == kept
    assert quick.control_plane.requests_served == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.csv",), "does not exist"),
        (("tenants.csv", "--connect", "--no-wait"), "--connect and --no-wait contradict"),
        (("tenants.csv", "--pooled"), "--pooled needs --uris FILE"),
        (
            ("tenants.csv", "--uris", "missing/uris.jsonl"),
            "is not a regular file in an existing directory",
        ),
        (("bad.csv",), "bad.csv, line 2: branch is missing: expected the name of a branch"),
    ],
)
def test_wrong_arguments_are_usage_errors(
    cli: CommandLine, quick: Served, file: str, arguments: tuple[str, ...], message: str
) -> None:
    assert file
    Path("bad.csv").write_text("project,branch\nacme,\n")
    before = quick.control_plane.requests_served
    result = cli("fleet", "apply", *arguments, at=quick)
    assert message in " ".join(result.stderr.split())
    assert result.exit_code == 2
    assert quick.control_plane.requests_served == before


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_help_names_every_field(cli: CommandLine, command: str) -> None:
    shown = cli("fleet", command, "--help", COLUMNS="200").stdout
    assert {*re.findall(r"\w+", shown)} >= {*EXPECTED}
