from pathlib import Path

import msgspec
import pytest

from neonctl_async import Operation, OperationRef
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.cli.conftest import CommandLine
from tests.cli.served import Served, served

PENDING = Path("neonctl-async-pending-1.jsonl")


def operations(lines: str) -> list[Operation]:
    return msgspec.json.Decoder(Operation).decode_lines(lines)


def test_list_shows_the_columns_of_the_console(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    result = cli("operations", "list", "-p", created.project.id, at=quick)
    header, start, create = result.stdout.splitlines()
    titles = ["ID", "Operation", "Status", "Date", "Duration", "Branch", "Compute", "Error"]
    assert header.split() == titles
    assert start.startswith(f"{created.operations[1].id}  Start compute    OK      20")
    assert start.endswith(f"0.0 s     main    {created.endpoints[0].id}")
    assert create.startswith(f"{created.operations[0].id}  Create timeline  OK")
    assert create.endswith("main")


def test_control_characters_of_an_error_are_escaped(cli: CommandLine, quick: Served) -> None:
    quick.fail_next("create_timeline", error="\x1b[2Jgone")
    [operation, *_] = quick.project().operations
    result = cli("operations", "get", operation.id, "-p", operation.project_id, at=quick)
    assert "\\x1b[2Jgone" in result.stdout
    assert "\x1b" not in result.stdout


def test_limit_bounds_the_list(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    result = cli("operations", "list", "-p", id, "--limit", "1", "-o", "jsonl", at=quick)
    assert [one.action for one in operations(result.stdout)] == ["start_compute"]
    more = cli("operations", "list", "-p", id, "--limit", "2000", "-o", "raw", at=quick)
    assert len(more.stdout.split()) == 2


def test_failed_operation_is_shown_with_its_reason(cli: CommandLine, quick: Served) -> None:
    quick.fail_next("create_timeline")
    created = quick.project()
    operation = created.operations[0]
    result = cli("operations", "get", operation.id, "-p", created.project.id, at=quick)
    shown = dict(line.split(maxsplit=1) for line in result.stdout.splitlines() if " " in line)
    assert shown["ID"] == operation.id
    assert shown["Status"] == "Error"
    assert shown["Error"]


def test_wait_without_ids_waits_for_all_pending_operations(cli: CommandLine, slow: Served) -> None:
    created = slow.project()
    slow.branch(created.project.id)
    result = cli(
        *("operations", "wait", "--timeout", "0", "-o", "jsonl"),
        at=slow,
        NEON_PROJECT_ID=created.project.id,
    )
    assert len(operations(result.stdout)) == 3
    assert len(PENDING.read_text().splitlines()) == 3
    assert result.exit_code == 4


def test_wait_returns_at_once_without_pending_operations(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    id = created.project.id
    result = cli("operations", "wait", "-p", id, "-o", "raw", at=quick)
    assert result.stdout == ""
    assert result.stderr == f"project {id} has no pending operations\n"
    named = created.operations[0].id
    assert cli("operations", "wait", named, "-p", id, "-o", "raw", at=quick).stdout.strip() == named


def test_failed_operations_are_shown_with_exit_code_1(cli: CommandLine, quick: Served) -> None:
    quick.fail_next("create_timeline")
    created = quick.project()
    ids = [one.id for one in created.operations]
    result = cli("operations", "wait", *ids, "-p", created.project.id, at=quick)
    assert [line.split()[3] for line in result.stdout.splitlines()[1:]] == ["Error"] * 2
    assert "the operation failed, as planned" in result.stdout
    assert "error: 2 of 2 operations failed" in result.stderr
    assert result.exit_code == 1
    assert not PENDING.exists()


def test_wait_resumes_from_the_file_of_an_earlier_wait(cli: CommandLine, slow: Served) -> None:
    created = slow.project()
    env = {"NEON_PROJECT_ID": created.project.id}
    assert cli("operations", "wait", "--timeout", "0", at=slow, **env).exit_code == 4
    refs = msgspec.json.Decoder(OperationRef).decode_lines(PENDING.read_bytes())
    assert sorted(one.id for one in refs) == sorted(one.id for one in created.operations)
    again = cli("operations", "wait", "--resume", str(PENDING), "--timeout", "0", at=slow)
    assert again.exit_code == 4
    assert "--resume neonctl-async-pending-1.jsonl" in again.stderr
    assert len(PENDING.read_text().splitlines()) == 2
    assert list(Path.cwd().iterdir()) == [PENDING.absolute()]


@pytest.mark.parametrize("command", ["wait", "watch"])
def test_file_is_removed_when_all_its_operations_have_finished(
    cli: CommandLine, quick: Served, command: str
) -> None:
    lines = [msgspec.json.encode(one.ref) for one in quick.project().operations]
    for path in (PENDING, Path("mine.jsonl")):
        path.write_bytes(b"\n".join(lines))
        assert cli("operations", command, "--resume", str(path), at=quick).exit_code == 0
    assert list(Path.cwd().iterdir()) == [Path("mine.jsonl").absolute()]


def test_file_is_removed_when_its_operations_have_failed(cli: CommandLine, quick: Served) -> None:
    quick.fail_next("create_timeline")
    lines = [msgspec.json.encode(one.ref) for one in quick.project().operations]
    PENDING.write_bytes(b"\n".join(lines))
    assert cli("operations", "wait", "--resume", str(PENDING), at=quick).exit_code == 1
    assert not PENDING.exists()


def test_file_stays_if_its_operations_could_not_be_read(cli: CommandLine, quick: Served) -> None:
    [one, _] = quick.project().operations
    PENDING.write_bytes(msgspec.json.encode(one.ref))
    wrong_key = {"NEON_API_KEY": "neon_api_key_wrong"}
    result = cli("operations", "wait", "--resume", str(PENDING), at=quick, **wrong_key)
    assert result.exit_code == 3
    assert msgspec.json.decode(PENDING.read_bytes(), type=OperationRef) == one.ref


@pytest.mark.parametrize("status", ["Error", "In progress"])
@pytest.mark.parametrize("width", [80, 120])
def test_list_fits_the_screen_and_shows_the_reason_of_a_failure(
    cli: CommandLine, quick: Served, monkeypatch: pytest.MonkeyPatch, width: int, status: str
) -> None:
    def label(_operation: Operation) -> str:
        return status

    monkeypatch.setattr("neonctl_async.cli.output._width", lambda: width)
    quick.fail_next("create_timeline")
    created = quick.project()
    monkeypatch.setattr("neonctl_async.cli.commands.operations.status_label", label)
    result = cli("operations", "list", "-p", created.project.id, at=quick)
    assert max(map(len, result.stdout.splitlines())) <= width
    header, *rows = result.stdout.splitlines()
    assert header.split()[:3] == ["ID", "Operation", "Status"]
    assert ("Date" in header) == (width == 120)
    assert rows[-1].startswith(f"{created.operations[0].id}  Create timeline  {status:<6}  ")
    assert "  the ope" in rows[-1]


def test_created_record_can_be_piped_into_wait(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    arguments = ("branches", "create", "-p", id, "--no-wait", "-o", "jsonl")
    line = cli(*arguments, at=quick).stdout
    ids = [one["id"] for one in msgspec.json.decode(line)["operations"]]
    result = cli("operations", "wait", "--resume", "-", "-o", "raw", at=quick, typed=line)
    assert result.stdout.split() == ids


def test_list_can_be_piped_into_wait(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    lines = cli("operations", "list", "-p", id, "-o", "jsonl", at=quick).stdout
    result = cli("operations", "wait", "--resume", "-", "-o", "raw", at=quick, typed=lines)
    assert result.stdout.split() == [one.id for one in operations(lines)]


def test_records_of_branches_are_no_operations(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    lines = cli("branches", "list", "-p", id, "-o", "jsonl", at=quick).stdout
    result = cli("operations", "wait", "--resume", "-", at=quick, typed=lines)
    assert "line 1 is not a reference to an operation" in " ".join(result.stderr.split())
    assert (result.stdout, result.exit_code) == ("", 2)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--resume", "missing.jsonl"), ": missing.jsonl cannot be read: No such file"),
        (("--resume", "-"), "line 1 is not a reference"),
        ((), "no project: set --project"),
        (("--timeout", "nan", "-p", "x"), "nan is not a number of seconds, 0 or more"),
    ],
)
@pytest.mark.parametrize("command", ["wait", "watch"])
def test_invalid_wait_arguments_are_a_usage_error(
    cli: CommandLine, quick: Served, command: str, arguments: tuple[str, ...], complaint: str
) -> None:
    result = cli("operations", command, *arguments, at=quick, typed='{"id": 1}\n')
    assert complaint in " ".join(result.stderr.replace("│", "").split())
    assert (result.stdout, result.exit_code) == ("", 2)


def test_ids_and_resume_exclude_each_other(cli: CommandLine, quick: Served) -> None:
    result = cli("operations", "wait", "some-id", "--resume", "-", at=quick, typed="")
    assert result.stderr == "error: --resume and operation ids are both set: use one of them\n"
    assert result.exit_code == 2


def test_empty_file_is_reported(cli: CommandLine, quick: Served) -> None:
    result = cli("operations", "wait", "--resume", "-", at=quick, typed="\n")
    assert result.stderr == "the file contains no operation: there is nothing to wait for\n"
    assert result.exit_code == 0


def test_invalid_id_is_not_written_to_the_file(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    result = cli("operations", "wait", "a/b", "-p", project_id, at=quick)
    assert result.stderr.startswith("error: operation_id is 'a/b'")
    assert len(result.stderr.splitlines()) == 1
    assert result.exit_code == 2
    assert not PENDING.exists()


def test_watch_shows_each_change(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    ids = [one.id for one in created.operations]
    arguments = ("operations", "watch", *ids, "-p", created.project.id)
    lines = cli(*arguments, at=quick).stdout.splitlines()
    assert sorted(line.split()[-1] for line in lines) == sorted(ids)
    assert all(" OK " in line for line in lines)
    shown = operations(cli(*arguments, "--output", "jsonl", at=quick).stdout)
    assert sorted(one.id for one in shown) == sorted(ids)


def test_watch_rejects_json_output(cli: CommandLine, quick: Served) -> None:
    result = cli("operations", "watch", "-p", "x", "--output", "json", at=quick)
    assert (result.stdout, result.exit_code) == ("", 2)
    assert "use --output jsonl" in result.stderr


def test_timed_out_wait_with_failures_prints_them_and_exits_with_1(cli: CommandLine) -> None:
    durations = Durations(default=1000, by_action={"create_branch": 0})
    with served(LocalControlPlane(durations=durations, lock="none")) as control_plane:
        begun = control_plane.project()
        control_plane.fail_next("create_branch")
        [failed] = control_plane.branch(begun.project.id).operations
        ids = (failed.id, begun.operations[0].id)
        waiting = ("operations", "wait", *ids, "-p", begun.project.id, "--timeout", "0.1")
        result = cli(*waiting, "-o", "raw", at=control_plane)
    assert result.exit_code == 1
    assert "1 of 2 operations did not finish within 0.1 s" in result.stderr
    assert result.stderr.count(f"create_branch {failed.id} of branch {failed.branch_id} in ") == 1
    assert "is failed: the operation failed, as planned" in result.stderr
    assert "operations still pending: 1; to wait for them" in result.stderr
    assert sorted(result.stdout.split()) == sorted(ids)


def test_wait_that_ends_early_prints_only_the_operations_that_failed(cli: CommandLine) -> None:
    durations = Durations(default=1000, by_action={"create_branch": 0})
    with served(LocalControlPlane(durations=durations, lock="none")) as control_plane:
        begun = control_plane.project()
        control_plane.fail_next("create_branch")
        [failed] = control_plane.branch(begun.project.id).operations
        [finished] = control_plane.branch(begun.project.id, "done").operations
        listing = "GET /projects/{project_id}/operations"
        control_plane.control_plane.inject(Fault(route=listing, status=403, after=1))
        ids = (failed.id, finished.id, *(one.id for one in begun.operations))
        result = cli(
            "operations", "wait", *ids, "-p", begun.project.id, "-o", "raw", at=control_plane
        )
    assert result.exit_code == 3
    assert f"create_branch {failed.id} is failed: the operation failed, as planned" in result.stderr
    assert finished.id not in result.stderr


def test_missing_operation_is_not_written_to_the_file(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    result = cli("operations", "wait", "nope", "-p", project_id, at=quick)
    assert result.exit_code == 3
    assert "pending" not in result.stderr
    assert result.stdout == ""
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--status", "error"), ["create_branch"]),
        (("--status", "failed", "--branch", "broken"), ["create_branch"]),
        (("--status", "OK", "--branch", "main"), ["start_compute", "create_timeline"]),
        (("--action", "Create branch", "--limit", "1"), ["create_branch"]),
        (("--action", "create-timeline"), ["create_timeline"]),
        (("--status", "running"), []),
    ],
)
def test_list_is_filtered(
    cli: CommandLine, quick: Served, options: tuple[str, ...], expected: list[str]
) -> None:
    id = quick.project().project.id
    quick.fail_next("create_branch")
    quick.branch(id, "broken")
    result = cli("operations", "list", *options, "-p", id, "-o", "jsonl", at=quick)
    assert [one.action for one in operations(result.stdout)] == expected


def test_unknown_status_is_a_usage_error(cli: CommandLine, quick: Served) -> None:
    result = cli("operations", "list", "--status", "broken", "-p", "x", at=quick, COLUMNS="200")
    assert "'broken' is no status: expected ok, scheduling, in_progress, error" in result.stderr
    assert result.exit_code == 2
