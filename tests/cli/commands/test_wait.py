import gc

import msgspec
import pytest

from neonctl_async.types import Branch, Endpoint
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.cli.conftest import CommandLine
from tests.cli.served import Served, served
from tests.support.databases import READ_WRITE
from tests.support.postgres import skip_without_postgres


def test_ready_branches_are_shown(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    project = created.project.id
    branch = quick.branch(project, "preview").branch.id
    result = cli("wait", "--for", "ready", "preview", "main", "-p", project, "-o", "raw", at=quick)
    assert (result.stdout.split(), result.stderr) == ([branch, created.branch.id], "")
    result = cli("wait", "--for", "ready", branch, "-p", project, "-o", "jsonl", at=quick)
    assert msgspec.json.decode(result.stdout, type=Branch).current_state == "ready"
    assert result.exit_code == 0


def test_without_a_name_the_project_is_ready(cli: CommandLine, quick: Served) -> None:
    project = quick.project().project.id
    result = cli("wait", "--for", "ready", "-p", project, "-o", "raw", at=quick)
    assert result.stdout.split() == [project]


def test_computes_are_selected_by_id_or_branch(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    project, compute = created.project.id, created.endpoints[0].id
    for name in (compute, "main", created.branch.id):
        arguments = ("wait", "--for", "active", name, "-p", project, "--output", "jsonl")
        result = cli(*arguments, at=quick)
        found = msgspec.json.decode(result.stdout, type=Endpoint)
        assert (found.id, found.current_state) == (compute, "active")
        assert result.exit_code == 0


def test_idle_compute_is_shown(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    project, compute = created.project.id, created.endpoints[0].id
    quick.run(lambda neon: neon.endpoints.suspend(project, compute))
    result = cli("wait", "--for", "idle", compute, "-p", project, at=quick)
    assert [line.split()[2] for line in result.stdout.splitlines()] == ["State", "idle"]


def test_operations_are_shown(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    operation, project = created.operations[0].id, created.project.id
    result = cli("wait", "--for", "operation", operation, "-p", project, "-o", "raw", at=quick)
    assert result.stdout.split() == [operation]
    result = cli("wait", "--for", "operation", "-p", project, at=quick)
    assert "has no pending operations" in result.stderr


def test_deleted_branch_and_compute_end_the_wait(cli: CommandLine, quick: Served) -> None:
    project = quick.project().project.id
    branch = quick.run(lambda neon: neon.branches.create(project, endpoints=[READ_WRITE]))
    quick.run(lambda neon: neon.branches.delete(project, branch.branch.id))
    names = (branch.branch.id, branch.endpoints[0].id)
    result = cli("wait", "--for", "deleted", *names, "-p", project, at=quick)
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)
    for output in ("json", "yaml"):
        result = cli("wait", "--for", "deleted", *names, "-p", project, "-o", output, at=quick)
        assert result.stdout == "[]\n"


def test_name_of_no_branch_counts_as_deleted(cli: CommandLine, quick: Served) -> None:
    project = quick.project().project.id
    result = cli("wait", "--for", "deleted", "gone", "-p", project, at=quick)
    assert result.stderr == (
        f"no branch of project {project} has the name or the id 'gone'; its branches: main; it "
        "counts as deleted\n"
    )
    assert result.exit_code == 0


def test_failed_lookup_of_a_name_starts_no_wait(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    route = "GET /projects/{project_id}/branches"
    quick.control_plane.inject(Fault(route=route, status=403, message="no", times=1))
    arguments = ("wait", "--for", "deleted", created.branch.id, "preview")
    result = cli(*arguments, "-p", created.project.id, at=quick)
    gc.collect()  # pytest fails if a coroutine was never awaited
    assert "403 Forbidden: no" in result.stderr
    assert result.exit_code == 3


def test_deleted_project_ends_the_wait(cli: CommandLine, quick: Served) -> None:
    project = quick.project().project.id
    quick.run(lambda neon: neon.projects.delete(project))
    result = cli("wait", "--for", "deleted", "-p", project, at=quick)
    assert (result.stdout, result.exit_code) == ("", 0)


@pytest.mark.parametrize(
    ("condition", "name"), [("ready", "main"), ("active", "main"), ("deleted", "main")]
)
def test_timeout_is_reported(cli: CommandLine, slow: Served, condition: str, name: str) -> None:
    project = slow.project().project.id
    arguments = ("wait", "--for", condition, name, "-p", project, "--timeout", "0.05")
    result = cli(*arguments, at=slow)
    assert f"did not become '{condition}' within 0.05 s" in result.stderr
    assert (result.stdout, result.exit_code) == ("", 4)


def test_emulated_compute_is_never_connectable(cli: CommandLine, quick: Served) -> None:
    project = quick.project().project.id
    result = cli("wait", "--for", "connectable", "main", "-p", project, at=quick)
    assert "is never connectable (dns)" in result.stderr
    assert result.exit_code == 1


@pytest.mark.parametrize("condition", ["active", "idle", "connectable"])
def test_compute_must_be_named(cli: CommandLine, quick: Served, condition: str) -> None:
    result = cli("wait", "--for", condition, "-p", quick.project().project.id, at=quick)
    assert result.stderr == (
        f"error: --for {condition} has no compute: add the name of a branch or a compute\n"
    )
    assert result.exit_code == 2


def test_branch_without_a_compute_is_a_usage_error(cli: CommandLine, quick: Served) -> None:
    project = quick.project().project.id
    created = quick.branch(project, "bare")
    result = cli("wait", "--for", "active", "bare", "-p", project, at=quick)
    hint = f"add one with `neonctl-async endpoints create --branch {created.branch.id}`"
    assert result.stderr == f"error: branch bare has no compute: {hint}\n"
    assert result.exit_code == 2


@pytest.mark.parametrize("condition", ["ready", "active"])
def test_unknown_name_is_an_error(cli: CommandLine, quick: Served, condition: str) -> None:
    project = quick.project().project.id
    result = cli("wait", "--for", condition, "maim", "-p", project, at=quick)
    assert "no branch of project" in result.stderr
    assert "its branches: main" in result.stderr
    assert result.exit_code == 3


def test_condition_is_required(cli: CommandLine, quick: Served) -> None:
    result = cli("wait", "main", "-p", "x", at=quick, COLUMNS="200")
    choices = "operation, ready, active, idle, connectable, deleted"
    error = f"Error: Missing option '--for'. Choose from: {choices}"
    assert result.stderr.splitlines()[-1] == error
    assert result.exit_code == 2


@pytest.mark.parametrize("command", [("create",), ("ensure", "preview")])
def test_created_branch_that_is_not_connectable_is_shown(
    cli: CommandLine, quick: Served, command: tuple[str, ...]
) -> None:
    project = quick.project().project.id
    result = cli("branches", *command, "--connect", "-p", project, "-o", "raw", at=quick)
    branch = result.stdout.strip()
    created, error = result.stderr.splitlines()
    assert created == f"branch {branch} was created"
    assert "is never connectable (dns): the host name ep-" in error
    assert result.exit_code == 1


def test_adopted_branch_that_is_not_connectable_is_shown(cli: CommandLine, quick: Served) -> None:
    project = quick.project().project.id
    ensure = ("branches", "ensure", "preview", "-p", project, "-o", "raw")
    cli(*ensure, at=quick)
    result = cli(*ensure, "--connect", at=quick)
    adopted, error = result.stderr.splitlines()
    assert adopted == f"branch {result.stdout.strip()} was adopted"
    assert "is never connectable (dns): the host name ep-" in error
    assert result.exit_code == 1


@pytest.mark.parametrize("command", [("create",), ("ensure", "preview")])
@pytest.mark.parametrize("option", ["--no-wait", "--no-compute"])
def test_connect_contradicts_other_options(
    cli: CommandLine, quick: Served, command: tuple[str, ...], option: str
) -> None:
    result = cli("branches", *command, "--connect", option, "-p", "x", at=quick)
    assert result.stderr == (f"error: --connect and {option} are both set: leave one of them out\n")
    assert result.exit_code == 2


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.process
def test_real_computes_are_connectable(cli: CommandLine) -> None:
    skip_without_postgres()
    with served(LocalControlPlane(postgres=True, durations=Durations(default=0))) as real:
        created = cli("projects", "create", "--connect", "-o", "raw", at=real)
        project = created.stdout.strip()
        waited = cli("wait", "--for", "connectable", "main", "-p", project, "-o", "raw", at=real)
        ensured = cli("branches", "ensure", "preview", "--connect", "-p", project, at=real)
    assert (created.exit_code, created.stderr) == (0, "")
    assert ensured.exit_code == 0
    assert waited.stdout.startswith("ep-")
    assert waited.exit_code == 0
