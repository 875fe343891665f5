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
        f"ID       {branch.branch.id}",
        "Name     preview",
    ]


def test_deleted_branch_is_gone(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    branch_id = quick.branch(id).branch.id
    result = cli("branches", "delete", branch_id, "-p", id, at=quick)
    assert result.stdout.splitlines()[0].split() == ["Deleted", branch_id]
    assert cli("branches", "list", "-p", id, "-o", "raw", at=quick).stdout.count("\n") == 1


def test_empty_parent_is_a_usage_error(cli: CommandLine, quick: Served) -> None:
    result = cli("branches", "create", "--parent", "", at=quick)
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr == "error: --parent is empty: set a value, or leave it out\n"
