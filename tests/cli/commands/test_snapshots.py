import msgspec
import pytest

from neonctl_async.types import Snapshot, SnapshotCreated, SnapshotRestored
from tests.cli.conftest import CommandLine
from tests.cli.served import Served


def taken(quick: Served, project_id: str, branch_id: str, name: str = "friday") -> Snapshot:
    call = quick.run(
        lambda neon: neon.snapshots.create(project_id, branch_id, name=name, wait=True)
    )
    return call.snapshot


def test_created_snapshot_is_taken_and_listed(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    env = {"NEON_PROJECT_ID": created.project.id}
    command = ("snapshots", "create", "--name", "friday", "-b", "main", "-o", "json")
    result = cli(*command, "--expires-at", "2099-01-31T18:00:00Z", at=quick, **env)
    taken = msgspec.json.decode(result.stdout, type=SnapshotCreated)
    assert [one.status for one in taken.operations] == ["finished"]
    assert taken.snapshot.source_branch_id == created.branch.id
    assert taken.snapshot.expires_at == "2099-01-31T18:00:00Z"
    header, line = cli("snapshots", "list", at=quick, **env).stdout.splitlines()
    assert header.split() == ["ID", "Name", "Branch", "Created", "Expires"]
    assert line.split()[:3] == [taken.snapshot.id, "friday", created.branch.name]
    assert line.endswith("  2099-01-31 18:00:00")


def test_snapshot_has_an_earlier_state_of_the_branch(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    time = created.branch.created_at.isoformat()
    command = ("snapshots", "create", "-p", created.project.id, "--at", time, "-o", "json")
    taken = msgspec.json.decode(cli(*command, at=quick).stdout, type=SnapshotCreated).snapshot
    assert taken.timestamp is not None
    assert taken.timestamp[:19] == time[:19]


@pytest.mark.parametrize("by_name", [True, False])
def test_restored_branch_can_be_checked_before_it_replaces_another(
    cli: CommandLine, quick: Served, *, by_name: bool
) -> None:
    created = quick.project()
    id = created.project.id
    snapshot = taken(quick, id, created.branch.id)
    text = "friday" if by_name else snapshot.id
    result = cli("snapshots", "restore", text, "--name", "checked", "-p", id, "-o", "raw", at=quick)
    restored = result.stdout.strip()
    assert quick.run(lambda neon: neon.branches.find(id, "checked")).id == restored
    assert quick.run(lambda neon: neon.branches.default(id)).id == created.branch.id

    command = ("snapshots", "finalize", "checked", "--name", "before", "-p", id)
    finalized = cli(*command, at=quick)
    assert finalized.stdout.splitlines()[0].split() == ["Finalized", restored]
    assert quick.run(lambda neon: neon.branches.default(id)).id == restored
    assert quick.run(lambda neon: neon.branches.find(id, "before")).id == created.branch.id


def test_restored_branch_replaces_its_target_at_once(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    id = created.project.id
    snapshot = taken(quick, id, created.branch.id)
    preview = quick.branch(id, "preview").branch.id
    command = ("snapshots", "restore", snapshot.id, "--finalize", "--target-branch", "preview")
    result = cli(*command, "-p", id, "-o", "json", at=quick)
    restored = msgspec.json.decode(result.stdout, type=SnapshotRestored).branch.id
    found = quick.run(lambda neon: neon.branches.find(id, "preview")).id
    assert found == restored != preview


def test_deleted_snapshot_is_gone(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    id = created.project.id
    snapshot = taken(quick, id, created.branch.id)
    result = cli("snapshots", "delete", "friday", "-p", id, at=quick)
    assert result.stdout.splitlines()[0].split() == ["Deleted", snapshot.id]
    assert cli("snapshots", "list", "-p", id, "-o", "raw", at=quick).stdout == ""


def test_shared_name_of_snapshots_lists_their_ids(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    id = created.project.id
    ids = {taken(quick, id, created.branch.id, name).id for name in ("friday", "monday")}
    # Names are unique since 2026. Older snapshots can share one.
    state = quick.control_plane._state  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no request gives two snapshots one name
    rename = "UPDATE snapshots SET name = 'friday'"
    quick.run(lambda _: state.database.run(lambda tx: tx.execute(rename)))
    result = cli("snapshots", "delete", "friday", "-p", id, at=quick)
    message, _, listed = result.stderr.strip().rpartition(": ")
    assert message.endswith("are named 'friday': use the id of one of them")
    assert set(listed.split(", ")) == ids
    assert result.exit_code == 2


def test_snapshot_has_a_slug_and_gets_another_name(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    cli("snapshots", "create", "--name", "friday", "--slug", "before-launch", "-p", id, at=quick)
    command = ("snapshots", "update", "friday", "--name", "monday", "-p", id, "-o", "json")
    updated = msgspec.json.decode(cli(*command, at=quick).stdout, type=Snapshot)
    assert (updated.name, updated.slug) == ("monday", "before-launch")


def test_expiry_of_a_snapshot_is_set_and_removed(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    id = created.project.id
    taken(quick, id, created.branch.id)
    for option, expires in ((("--expires-in", "7d"), True), (("--no-expiry",), False)):
        result = cli("snapshots", "update", "friday", *option, "-p", id, "-o", "json", at=quick)
        updated = msgspec.json.decode(result.stdout, type=Snapshot)
        assert (updated.expires_at is not None) is expires


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ((), "nothing to change: set --name, --expires-in or --no-expiry"),
        (("--no-expiry", "--expires-in", "7d"), "--no-expiry contradicts --expires-in"),
    ],
)
def test_update_that_says_nothing_is_a_usage_error(
    cli: CommandLine, quick: Served, options: tuple[str, ...], complaint: str
) -> None:
    result = cli("snapshots", "update", "friday", *options, "-p", "x", at=quick)
    assert complaint in result.stderr
    assert result.exit_code == 2


def test_schedule_is_set_shown_and_removed(cli: CommandLine, quick: Served) -> None:
    env = {"NEON_PROJECT_ID": quick.project().project.id}
    rule = ("--frequency", "weekly", "--day", "1", "--hour", "3", "--retention", "7d")
    cli("snapshots", "schedule", *rule, at=quick, **env)
    header, line = cli("snapshots", "schedule", at=quick, **env).stdout.splitlines()
    assert header.split() == ["Frequency", "Hour", "Day", "Month", "Retention"]
    assert line.split() == ["weekly", "3", "1", "7d"]
    removed = cli("snapshots", "schedule", "--frequency", "never", "-o", "json", at=quick, **env)
    assert removed.stdout == "[]\n"


def test_rule_without_a_frequency_is_a_usage_error(cli: CommandLine, quick: Served) -> None:
    result = cli("snapshots", "schedule", "--hour", "3", "-p", "x", at=quick)
    assert "need a --frequency" in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        (("daily",), "a daily schedule needs --hour N, from 0 to 23 in UTC"),
        (("weekly", "--hour", "3"), "a weekly schedule needs --day N, from 1 to 7"),
        (
            ("monthly",),
            "a monthly schedule needs --hour N, from 0 to 23 in UTC, and --day N, from 1 to 31",
        ),
    ],
)
def test_schedule_that_lacks_an_option_is_a_usage_error(
    cli: CommandLine, quick: Served, options: tuple[str, ...], missing: str
) -> None:
    result = cli("snapshots", "schedule", "--frequency", *options, "-p", "x", at=quick)
    assert result.stderr == f"error: {missing}\n"
    assert result.exit_code == 2
