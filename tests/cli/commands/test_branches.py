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


def test_branch_without_a_compute_has_no_compute(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    result = cli(
        *("branches", "create", "--no-compute", "--parent", created.branch.id),
        *("--expires-in", "3600", "--output", "json"),
        at=quick,
        NEON_PROJECT_ID=created.project.id,
    )
    branch = msgspec.json.decode(result.stdout, type=BranchCreated, dec_hook=decode_hook)
    assert branch.endpoints == []
    assert branch.branch.parent_id == created.branch.id
    assert branch.branch.expires_at is not None
    left = branch.branch.expires_at - datetime.now(UTC)
    assert timedelta(0) < left <= timedelta(hours=1)


@pytest.mark.parametrize(
    ("lifetime", "expected"), [("90", timedelta(seconds=90)), ("12h", timedelta(hours=12))]
)
def test_lifetime_has_a_unit_or_is_in_seconds(
    cli: CommandLine, quick: Served, lifetime: str, expected: timedelta
) -> None:
    id = quick.project().project.id
    result = cli("branches", "create", "-p", id, "--expires-in", lifetime, "-o", "json", at=quick)
    branch = msgspec.json.decode(result.stdout, type=BranchCreated, dec_hook=decode_hook).branch
    assert branch.expires_at is not None
    left = branch.expires_at - datetime.now(UTC)
    assert expected - timedelta(minutes=1) < left <= expected


@pytest.mark.parametrize("text", ["0", "0d", "-1", "7 d", "1_0", "soon"])
def test_lifetime_of_another_form_is_a_usage_error(
    cli: CommandLine, quick: Served, text: str
) -> None:
    result = cli("branches", "create", "-p", "x", "--expires-in", text, at=quick)
    assert result.stderr == (
        f"error: --expires-in is {text!r}: expected a number of seconds above 0, or a number and a "
        "unit, such as 12h or 7d\n"
    )
    assert result.exit_code == 2


@pytest.mark.parametrize("seconds", ["999999999999", "99999999999999"])
def test_expiry_after_the_last_date_is_a_usage_error(
    cli: CommandLine, quick: Served, seconds: str
) -> None:
    result = cli("branches", "create", "-p", "x", "--expires-in", seconds, at=quick)
    assert (
        result.stderr == f"error: --expires-in {seconds} is too large: the year would exceed 9999\n"
    )
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


def test_control_characters_in_a_name_are_escaped(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    quick.branch(id, name="\x1b[2Jgone")
    result = cli("branches", "list", "-p", id, at=quick)
    assert "\\x1b[2Jgone" in result.stdout
    assert "\x1b" not in result.stdout


def test_empty_parent_is_a_usage_error(cli: CommandLine, quick: Served) -> None:
    result = cli("branches", "create", "--parent", "", at=quick)
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr == "error: --parent is empty: set a value, or leave it out\n"
