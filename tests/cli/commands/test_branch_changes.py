"""Rename, reset and restore branches, and change their default flag and expiration."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from neonctl_async.cli.options import parse_time
from neonctl_async.models.secret import decode_hook
from neonctl_async.types import Branch, BranchUpdated
from neonctl_local import Durations, LocalControlPlane, ManualClock
from tests.cli.conftest import CommandLine
from tests.cli.served import Served, served


def changed(output: str) -> BranchUpdated:
    return msgspec.json.decode(output, type=BranchUpdated, dec_hook=decode_hook)


def branches(quick: Served, project_id: str) -> dict[str, Branch]:
    found = quick.run(lambda neon: neon.branches.list(project_id).collect())
    return {one.name: one for one in found}


def test_branch_is_renamed(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "old")
    result = cli("branches", "rename", "old", "new", "-p", project_id, at=quick)
    assert result.stdout.splitlines()[1].split() == ["Name", "new"]
    assert branches(quick, project_id).keys() == {"main", "new"}


def test_branch_becomes_the_default(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "next")
    result = cli("branches", "set-default", "next", "-p", project_id, "-o", "json", at=quick)
    assert changed(result.stdout).branch.default
    assert not branches(quick, project_id)["main"].default


def test_expiration_is_set_and_removed(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "short")
    command = ("branches", "set-expiration", "short", "-p", project_id, "-o", "json")
    moment = datetime.now(UTC).replace(microsecond=0) + timedelta(days=7)
    time = moment.astimezone(timezone(timedelta(hours=1))).isoformat()
    expires_at = changed(cli(*command, "--expires-at", time, at=quick).stdout).branch.expires_at
    assert expires_at == moment
    assert changed(cli(*command, at=quick).stdout).branch.expires_at is None
    assert changed(cli(*command, "--expires-in", "7d", at=quick).stdout).branch.expires_at


@pytest.mark.parametrize(
    ("time", "complaint"),
    [
        ("2030-01-31T18:00:00", "has no time zone: add Z for UTC, or an offset"),
        ("tomorrow", "is not a time: expected a time such as"),
    ],
)
def test_time_needs_a_time_zone(cli: CommandLine, quick: Served, time: str, complaint: str) -> None:
    arguments = ("branches", "create", "-p", "x", "--expires-at", time)
    result = cli(*arguments, at=quick, COLUMNS="200")
    assert complaint in result.stderr
    assert (result.stdout, result.exit_code) == ("", 2)


def test_point_is_a_time_or_an_lsn(cli: CommandLine, quick: Served) -> None:
    arguments = ("branches", "create", "-p", "x", "--at", "yesterday")
    result = cli(*arguments, at=quick, COLUMNS="200")
    assert result.stderr.splitlines()[-1] == (
        "Error: Invalid value for '--at': 'yesterday' is no time and no LSN: expected a time such "
        "as 2030-01-31T18:00:00Z, or an LSN such as 0/1A2B3C4"
    )
    assert (result.stdout, result.exit_code) == ("", 2)


def test_created_branch_expires_at_a_time(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    moment = datetime.now(UTC).replace(microsecond=0) + timedelta(days=7)
    time = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    cli("branches", "create", "-p", project_id, "--name", "short", "--expires-at", time, at=quick)
    assert branches(quick, project_id)["short"].expires_at == moment


@pytest.mark.parametrize(
    "command", [("create",), ("ensure", "new"), ("set-expiration", "br-late-frost-a1b2c3d4")]
)
def test_expiry_that_neon_refuses_is_a_usage_error(
    cli: CommandLine, quick: Served, command: tuple[str, ...]
) -> None:
    result = cli("branches", *command, "-p", "late-frost-12345678", "--expires-in", "31d", at=quick)
    assert result.stderr.startswith("error: expires_at is ")
    assert "Neon refuses more than 30 days ahead. Use " in result.stderr
    assert (result.stdout, result.exit_code) == ("", 2)


def test_two_expirations_are_a_usage_error(cli: CommandLine, quick: Served) -> None:
    arguments = ("--expires-at", "2030-01-31T18:00:00Z", "--expires-in", "60")
    result = cli("branches", "create", "-p", "x", *arguments, at=quick)
    assert result.stderr == ("error: --expires-in and --expires-at are both set: use one of them\n")
    assert result.exit_code == 2


def test_reset_keeps_the_previous_state_under_a_name(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    branch_id = quick.branch(project_id, "preview").branch.id
    arguments = ("branches", "reset", "preview", "--preserve-under-name", "before")
    result = cli(*arguments, "-p", project_id, "-o", "raw", at=quick)
    assert (result.stdout, result.exit_code) == (f"{branch_id}\n", 0)
    assert branches(quick, project_id).keys() == {"main", "preview", "before"}


def test_root_branch_cannot_be_reset(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    result = cli("branches", "reset", "main", "-p", created.project.id, at=quick)
    assert result.stderr == (
        f"error: branch {created.branch.id} has no parent: a root branch cannot be reset\n"
    )
    assert result.exit_code == 2


@pytest.mark.parametrize("source", ["main", "^parent"])
def test_branch_is_restored_from_another_branch(
    cli: CommandLine, quick: Served, source: str
) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "preview")
    arguments = ("branches", "restore", "preview", "--source", source, "-p", project_id)
    result = cli(*arguments, "-o", "json", at=quick)
    assert changed(result.stdout).branch.last_reset_at is not None
    assert result.exit_code == 0


def test_failed_restore_is_not_called_done(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    id = quick.branch(created.project.id, "preview").branch.id
    quick.fail_next("create_branch")
    arguments = ("branches", "restore", "preview", "--source", "main", "-p", created.project.id)
    result = cli(*arguments, "-o", "json", at=quick)
    requested, error, *_ = result.stderr.splitlines()
    assert requested == (
        f"the restore of branch {id} from branch {created.branch.id} was requested"
    )
    assert error.startswith("error: 1 of 1 operations failed: create_branch")
    assert result.exit_code == 1


def test_branch_is_restored_to_its_earlier_state(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    time = created.branch.created_at.isoformat()
    arguments = ("branches", "restore", "main", "--at", time, "--preserve-under-name", "before")
    result = cli(*arguments, "-p", created.project.id, at=quick)
    assert result.exit_code == 0, result.output
    assert branches(quick, created.project.id).keys() == {"main", "before"}


def test_branch_is_restored_to_an_lsn(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    quick.branch(created.project.id, "preview")
    lsn = branches(quick, created.project.id)["preview"].parent_lsn
    assert lsn is not None
    arguments = ("branches", "restore", "preview", "--source", "main", "--at", lsn)
    result = cli(*arguments, "-p", created.project.id, at=quick)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    "arguments", [(), ("--at", "0/1"), ("--preserve-under-name", "x"), ("--source", "main")]
)
def test_restore_from_itself_needs_a_point_and_a_name(
    cli: CommandLine, quick: Served, arguments: tuple[str, ...]
) -> None:
    project_id = quick.project().project.id
    result = cli("branches", "restore", "main", *arguments, "-p", project_id, at=quick)
    assert result.stderr == (
        "error: to restore a branch to its own earlier state, set --at and --preserve-under-name; "
        "--source selects another branch\n"
    )
    assert result.exit_code == 2


def test_root_branch_has_no_parent_as_source(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    arguments = ("branches", "restore", "main", "--source", "^parent", "-p", created.project.id)
    result = cli(*arguments, at=quick)
    assert result.stderr == (
        f"error: branch {created.branch.id} has no parent: set --source to another branch\n"
    )


def test_reset_branch_gets_an_expiration(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "preview")
    command = ("branches", "reset", "preview", "--expires-in", "7d", "-p", project_id)
    assert cli(*command, at=quick).exit_code == 0
    assert branches(quick, project_id)["preview"].expires_at is not None


def test_branch_with_a_refused_expiration_is_not_reset(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "preview")
    command = ("branches", "reset", "preview", "--expires-in", "31d", "-p", project_id)
    assert cli(*command, "--preserve-under-name", "before", at=quick).exit_code == 2
    assert "before" not in branches(quick, project_id)


def test_expiration_that_the_clock_of_the_server_refuses_resets_no_branch(cli: CommandLine) -> None:
    slow_clock = ManualClock(datetime.now(UTC) - timedelta(days=60))
    with served(LocalControlPlane(clock=slow_clock, durations=Durations(default=0))) as server:
        project_id = server.project().project.id
        server.branch(project_id, "preview")
        command = ("branches", "reset", "preview", "--expires-in", "7d", "-p", project_id)
        assert cli(*command, "--preserve-under-name", "before", at=server).exit_code == 2
        assert "before" not in branches(server, project_id)


def test_branch_is_protected_until_this_is_undone(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "preview")
    for options, is_protected in (((), True), (("--off",), False)):
        cli("branches", "protect", "preview", *options, "-p", project_id, at=quick)
        assert branches(quick, project_id)["preview"].protected is is_protected


@pytest.mark.parametrize("time", ["2030-01-31T18:00:00z", "2030-01-31t18:00:00Z"])
def test_time_may_be_in_lower_case(time: str) -> None:
    assert parse_time(time) == datetime(2030, 1, 31, 18, tzinfo=UTC)


def test_refused_reset_leaves_the_expiration(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "preview")
    command = ("branches", "reset", "preview", "--expires-in", "7d", "-p", project_id)
    result = cli(*command, "--preserve-under-name", "main", at=quick)
    assert "main" in result.stderr
    assert result.exit_code == 3
    assert branches(quick, project_id)["preview"].expires_at is None


def test_protected_branch_with_an_expiration_is_not_reset(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "preview")
    cli("branches", "protect", "preview", "-p", project_id, at=quick)
    command = ("branches", "reset", "preview", "--expires-in", "7d", "-p", project_id)
    result = cli(*command, "--preserve-under-name", "before", at=quick)
    assert "is protected, so it cannot expire" in result.stderr
    assert result.exit_code == 2
    assert "before" not in branches(quick, project_id)
