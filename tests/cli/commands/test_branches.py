from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from neonctl_async.models.secret import decode_hook
from neonctl_async.types import Branch, BranchCreated
from tests.cli.conftest import CommandLine
from tests.cli.served import Served


def test_created_branch_is_ready_with_a_compute(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    result = cli("branches", "create", "-p", id, "--name", "preview", "-o", "json", at=quick)
    created = msgspec.json.decode(result.stdout, type=BranchCreated, dec_hook=decode_hook)
    assert created.branch.name == "preview"
    assert [one.status for one in created.operations] == ["finished", "finished"]
    assert created.connection_uri.reveal() == "**********"
    assert (result.stderr, result.exit_code) == ("", 0)


@pytest.mark.parametrize("duration", ["3600", "1h"])
def test_branch_without_a_compute_has_no_compute(
    cli: CommandLine, quick: Served, duration: str
) -> None:
    created = quick.project()
    result = cli(
        *("branches", "create", "--no-compute", "--parent", created.branch.id),
        *("--expires-in", duration, "--output", "json"),
        at=quick,
        NEON_PROJECT_ID=created.project.id,
    )
    branch = msgspec.json.decode(result.stdout, type=BranchCreated, dec_hook=decode_hook)
    assert branch.endpoints == []
    assert branch.branch.parent_id == created.branch.id
    assert branch.branch.expires_at is not None
    left = branch.branch.expires_at - datetime.now(UTC)
    assert timedelta(minutes=50) < left <= timedelta(hours=1)


def test_settings_of_a_new_branch_and_its_compute(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    result = cli(
        *("branches", "create", "-p", id, "-o", "json", "--schema-only", "--protected"),
        *("--cu", "0.5-2", "--suspend-timeout", "60"),
        at=quick,
    )
    assert result.exit_code == 0, result.output
    created = msgspec.json.decode(result.stdout, type=BranchCreated, dec_hook=decode_hook)
    assert (created.branch.init_source, created.branch.protected) == ("schema-only", True)
    [compute] = created.endpoints
    assert (compute.autoscaling_limit_min_cu, compute.autoscaling_limit_max_cu) == (0.5, 2)
    assert compute.suspend_timeout_seconds == 60
    listed = cli("branches", "list", "-p", id, "--columns", "id,protected", at=quick)
    assert [created.branch.id, "yes"] in [row.split() for row in listed.stdout.splitlines()]


def test_branch_starts_at_an_earlier_state_of_its_parent(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    command = ("branches", "create", "-p", created.project.id, "-o", "json", "--no-compute", "--at")
    decode = msgspec.json.Decoder(BranchCreated, dec_hook=decode_hook).decode
    time = created.branch.created_at
    at_time = decode(cli(*command, time.isoformat(), at=quick).stdout).branch
    assert at_time.parent_timestamp == time.replace(microsecond=0)
    lsn = at_time.parent_lsn
    assert lsn is not None
    assert decode(cli(*command, lsn, at=quick).stdout).branch.parent_lsn == lsn


@pytest.mark.parametrize("option", ["--cu", "--suspend-timeout"])
def test_settings_of_no_compute_are_a_usage_error(
    cli: CommandLine, quick: Served, option: str
) -> None:
    result = cli("branches", "create", "-p", "x", "--no-compute", option, "1", at=quick)
    assert result.stderr == ("error: --no-compute is set: leave out --cu and --suspend-timeout\n")
    assert result.exit_code == 2


@pytest.mark.parametrize("duration", ["999999999999", "99999999999999", "3000000d"])
def test_expiry_after_the_last_date_is_a_usage_error(
    cli: CommandLine, quick: Served, duration: str
) -> None:
    result = cli("branches", "create", "-p", "x", "--expires-in", duration, at=quick)
    assert f"'--expires-in': '{duration}' is too long: " in " ".join(result.stderr.split())
    assert result.exit_code == 2


def test_no_wait_prints_the_operations_as_they_start(cli: CommandLine, slow: Served) -> None:
    id = slow.project().project.id
    result = cli("branches", "create", "-p", id, "--no-wait", at=slow)
    assert "Create branch: In progress, Start compute: Scheduling" in result.stdout
    assert (result.stderr, result.exit_code) == ("", 0)


def test_branch_that_is_not_ready_in_time_is_reported_and_can_be_resumed(
    cli: CommandLine, slow: Served
) -> None:
    id = slow.project().project.id
    result = cli("branches", "create", "-p", id, "--timeout", "0.01", "-o", "raw", at=slow)
    branch_id = result.stdout.strip()
    created, error, hint = result.stderr.splitlines()
    assert created == f"branch {branch_id} was created"
    assert error.startswith("error: 2 of 2 operations did not finish within 0.01 s")
    assert hint == (
        "operations still pending: 2; to wait for them: "
        "neonctl-async operations wait --resume neonctl-async-pending-1.jsonl"
    )
    assert result.exit_code == 4


def test_branches_are_listed_and_shown(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    branch = quick.branch(created.project.id)
    env = {"NEON_PROJECT_ID": created.project.id}
    listed = cli("branches", "list", "--output", "jsonl", at=quick, **env)
    decoder = msgspec.json.Decoder(Branch)
    names = {one.name for one in decoder.decode_lines(listed.stdout)}
    assert names == {"main", "preview"}
    shown = cli("branches", "get", branch.branch.id, at=quick, **env)
    assert shown.stdout.splitlines()[:2] == [
        f"ID         {branch.branch.id}",
        "Name       preview",
    ]


def test_deleted_branch_is_gone(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    branch_id = quick.branch(id).branch.id
    result = cli("branches", "delete", branch_id, "-p", id, at=quick)
    assert result.stdout.splitlines()[0].split() == ["Deleted", branch_id]
    assert cli("branches", "list", "-p", id, "-o", "raw", at=quick).stdout.count("\n") == 1


@pytest.mark.parametrize("by_name", [True, False])
def test_deleted_branch_is_listed_and_recovered(
    cli: CommandLine, quick: Served, *, by_name: bool
) -> None:
    id = quick.project().project.id
    branch_id = quick.branch(id, "lost").branch.id
    cli("branches", "delete", "lost", "-p", id, at=quick)
    listed = cli("branches", "list", "--deleted", "-p", id, "-o", "raw", at=quick)
    assert listed.stdout == f"{branch_id}\n"
    table = cli("branches", "list", "--deleted", "-p", id, at=quick).stdout
    assert table.splitlines()[1].split()[-1] == "main"
    text = "lost" if by_name else branch_id
    result = cli("branches", "recover", text, "-p", id, at=quick)
    parent_id = quick.run(lambda neon: neon.branches.default(id)).id
    shown = [line.split() for line in result.stdout.splitlines()]
    assert shown[:3] == [["ID", branch_id], ["Name", "lost"], ["Parent", parent_id]]
    assert quick.run(lambda neon: neon.branches.find(id, "lost")).id == branch_id


def test_shared_name_of_deleted_branches_lists_their_ids(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    ids = [quick.branch(id, "lost").branch.id]
    cli("branches", "delete", "lost", "-p", id, at=quick)
    ids.append(quick.branch(id, "lost").branch.id)
    cli("branches", "delete", "lost", "-p", id, at=quick)
    result = cli("branches", "recover", "lost", "-p", id, at=quick)
    message, _, listed = result.stderr.strip().rpartition(": ")
    assert message == (
        f"error: 2 deleted branches of project {id} are named 'lost': use the id of one of them"
    )
    assert set(listed.split(", ")) == {*ids}
    assert result.exit_code == 2


def test_branch_that_is_not_deleted_cannot_be_recovered_by_name(
    cli: CommandLine, quick: Served
) -> None:
    id = quick.project().project.id
    result = cli("branches", "recover", "main", "-p", id, at=quick)
    assert result.stderr == (
        f"error: no deleted branch of project {id} has the name or the id 'main'\n"
    )
    assert result.exit_code == 3


def test_empty_parent_is_a_usage_error(cli: CommandLine, quick: Served) -> None:
    result = cli("branches", "create", "--parent", "", at=quick)
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr == "error: --parent is empty: set a value, or leave it out\n"


def test_permanently_deleted_branch_cannot_be_recovered(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    quick.branch(id, "gone")
    assert cli("branches", "delete", "gone", "--hard-delete", "-p", id, at=quick).exit_code == 0
    assert cli("branches", "list", "--deleted", "-p", id, "-o", "raw", at=quick).stdout == ""
