"""What a campaign rejects: results and waits that contradict the server, and wrong rows."""

import logging
import sys
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from neonctl_async import (
    NeonError,
    NotFoundError,
    OperationFailedError,
    OperationStatus,
    StatusChanged,
    WaitTimeoutError,
)
from neonctl_async.hooks import WaitEnded, WaitStarted
from tests.support.records import PROJECT, JsonObject, operation, operation_json
from tools.campaign.__main__ import KINDS, main
from tools.campaign.__main__ import Kind as KindOfCampaign
from tools.campaign.databases.rows import BranchLedger, Contents
from tools.campaign.final_state import FinalState
from tools.campaign.outcomes import FaultLog, Kind, Outcome
from tools.campaign.report import Run
from tools.campaign.waits import HANG_SECONDS, wrong_waits

FINISHED = operation_json(status="finished")
NOT_FOUND = NotFoundError(status=404, message="not found", method="GET", path="/x")
TIMEOUT = WaitTimeoutError(timeout=4.0, settled=[], pending=[operation()], last_error=None)
FAILURE = OperationFailedError(failed=[operation(status="failed")], settled=[], pending=[])


def state_of(*operations: JsonObject, branches: int = 1, computes: int = 0) -> FinalState:
    """Return a state with branches of the same name and with operations of the first branch."""
    state = FinalState()
    state.names = {PROJECT: "first"}
    state.created = {("branch", "a"): [f"br-{number}" for number in range(1, branches + 1)]}
    state.computes["br-1"] = computes
    state.operations = {str(one["id"]): one | {"branch_id": "br-1"} for one in operations}
    return state


def outcome(kind: Kind = "branch", name: str = "a", /, **fields: object) -> Outcome:
    known = {"project_id": PROJECT, "requests": ["request"], **fields}
    return msgspec.structs.replace(Outcome(kind=kind, name=name), **known)


def created(**fields: object) -> Outcome:
    return outcome(**{"id": "br-1", "operations": [operation()], **fields})


@pytest.mark.parametrize("status", ["running", "finished"])
@pytest.mark.parametrize("action", ["suspend_compute", "check_availability"])
def test_background_work_of_the_control_plane_is_no_violation(action: str, status: str) -> None:
    state = state_of(FINISHED, operation_json("op-2", status, action=action))
    assert list(state.violations([created()], FaultLog())) == []


@pytest.mark.parametrize(
    ("state", "outcomes", "violation"),
    [
        (
            state_of(FINISHED, operation_json("op-2")),
            [created()],
            "the operations {'op-1'} instead",
        ),
        (state_of(), [created()], "the operations {'op-1'} are missing"),
        (state_of(operation_json()), [created()], "an operation is not finished"),
        (state_of(FINISHED, branches=2), [created()], "created 2 times"),
        (state_of(branches=0), [created(operations=[])], "[] exist"),
        (state_of(FINISHED), [created(computes=1)], "0 computes instead of 1"),
        (state_of(), [outcome(error=NOT_FOUND)], "reported as not created"),
        (state_of(), [outcome("deleted branch", "br-1")], "reported as deleted"),
        (
            state_of(branches=0),
            [outcome("deleted branch", "br-1", error=NOT_FOUND)],
            "reported as not deleted",
        ),
        (state_of(), [outcome(error=ValueError())], "not the library's"),
        (state_of(), [outcome("list", seconds=60.0)], "took 60.0 s"),
    ],
)
def test_result_that_contradicts_the_state_is_a_violation(
    state: FinalState, outcomes: list[Outcome], violation: str
) -> None:
    assert violation in "\n".join(state.violations(outcomes, FaultLog()))


def test_status_of_the_control_plane_itself_is_a_violation() -> None:
    log = FaultLog()
    log.rejected["request"] = 500
    assert "responded 500" in "\n".join(state_of().violations([outcome("list")], log))


@pytest.mark.parametrize(
    ("state", "outcomes", "violation"),
    [
        (state_of(branches=2), [], "branch a is not the same"),
        (state_of(branches=0, computes=1), [created()], "has a compute, but is no branch"),
        (state_of(operation_json(status="failed")), [], "operation op-1 is failed"),
        (
            state_of(
                *(operation_json(id, "finished", action="create_branch") for id in ("op-1", "op-2"))
            ),
            [],
            "create_branch ran 2 times",
        ),
        (state_of(), [outcome("new name", "second")], "called first instead of second"),
        (
            state_of(),
            [
                outcome("new name", "second", error=TIMEOUT),
                outcome("name", id="second"),
                outcome("name", id="first"),
            ],
            "was called first instead of second",
        ),
    ],
)
def test_state_that_contradicts_itself_or_the_state_before_is_a_violation(
    state: FinalState, outcomes: list[Outcome], violation: str
) -> None:
    assert violation in "\n".join(state.contradictions(state_of(), outcomes))


def test_branch_that_nobody_has_created_is_a_violation() -> None:
    assert list(state_of().contradictions(FinalState(), [])) == ["nobody has created branch a"]


def test_name_of_a_request_without_a_response_is_possible_until_it_is_seen() -> None:
    names = [outcome("new name", "second", error=TIMEOUT), outcome("name", id="first")]
    assert list(state_of().contradictions(state_of(), names)) == []


def log_of(*terminal: str, failed: Sequence[str] = ()) -> FaultLog:
    log = FaultLog()
    log.failed.update(failed)
    log.unchanged.add("request")
    log.add_terminal_records("request", terminal)
    return log


def wait_of(seconds: float) -> WaitEnded:
    started = WaitStarted(operations=(), timeout=4.0)
    return WaitEnded(wait=started, unsuccessful=0, pending=0, error=None, seconds=seconds)


@pytest.mark.parametrize(
    ("error", "fields", "log", "violation"),
    [
        (None, {"too_early": ["op-1"]}, log_of(), "had not finished"),
        (None, {}, log_of(failed=["op-1"]), "failed"),
        (NOT_FOUND, {}, log_of(), "a transient 404"),
        (FAILURE, {"wait": wait_of(1.0)}, log_of(), "which did not fail"),
        (TIMEOUT, {"received": {"request": HANG_SECONDS + 0.1}}, log_of("op-1"), "was known for"),
    ],
)
def test_wrong_ends_of_waits_are_violations(
    error: NeonError | None, fields: dict[str, object], log: FaultLog, violation: str
) -> None:
    [found] = wrong_waits(created(error=error, **fields), log)
    assert violation in found


@pytest.mark.parametrize(
    ("error", "fields", "log"),
    [
        (None, {}, log_of("op-1")),
        (NOT_FOUND, {"id": None}, log_of()),
        (FAILURE, {"wait": wait_of(1.0)}, log_of(failed=["op-1"])),
        (FAILURE, {"wait": wait_of(4.0)}, log_of()),
        (TIMEOUT, {"received": {"request": HANG_SECONDS - 0.1}}, log_of("op-1")),
        (TIMEOUT, {"received": {"request": 4.0}}, log_of("op-2")),
        (TIMEOUT, {"received": {}}, log_of("op-1")),
    ],
)
def test_right_ends_of_waits_are_no_violations(
    error: NeonError | None, fields: dict[str, object], log: FaultLog
) -> None:
    assert list(wrong_waits(created(error=error, **fields), log)) == []


def at(status: str, seconds: float, *, is_first: bool = False) -> StatusChanged:
    record = operation(status=status)
    updated_at = record.updated_at + timedelta(seconds=seconds)
    return StatusChanged(
        operation=msgspec.structs.replace(record, updated_at=updated_at),
        previous=None if is_first else OperationStatus.SCHEDULING,
    )


@pytest.mark.parametrize(
    ("changes", "violations"),
    [
        ([at("scheduling", 0), at("running", 1), at("finished", 2)], 0),
        ([at("running", 1), at("finished", 0)], 0),
        ([at("running", 1), at("scheduling", 0), at("finished", 2)], 1),
        ([at("running", 1), at("finished", 2), at("running", 3)], 1),
        ([at("running", 1), at("scheduling", 0, is_first=True), at("finished", 2)], 0),
        ([at("failed", 1), at("running", 1), at("finished", 2)], 0),
    ],
)
def test_status_that_goes_back_is_a_violation(
    changes: list[StatusChanged], violations: int
) -> None:
    assert len(list(wrong_waits(created(changes=changes), log_of()))) == violations


def ledger(*contents: Contents) -> BranchLedger:
    branch = BranchLedger("test", contents[0])
    branch.contents = list(contents)
    return branch


def test_acknowledged_row_must_exist() -> None:
    branch = ledger(Contents([1, 2]))
    branch.attempt(3)
    branch.acknowledge(3)
    assert "missing [3]" in str(branch.check([1, 2]))
    assert branch.check([1, 2, 3]) is None


def test_row_that_was_not_acknowledged_may_exist() -> None:
    for rows in ([1], [1, 2]):
        branch = ledger(Contents([1]))
        branch.attempt(2)
        assert branch.check(rows) is None


def test_foreign_row_is_a_difference() -> None:
    assert "unexpected [7]" in str(ledger(Contents([1])).check([1, 7]))


def test_row_that_was_seen_must_exist_from_then_on() -> None:
    branch = ledger(Contents([1], [2]))
    assert branch.check([1, 2]) is None
    assert "missing [2]" in str(branch.check([1]))


@pytest.mark.parametrize("rows", [[1, 2], [5]])
def test_interrupted_restore_leaves_the_old_content_or_the_new_one(rows: list[int]) -> None:
    branch = ledger(Contents([1, 2]), Contents([5]))
    assert branch.check(rows) is None
    assert [contents.required for contents in branch.contents] == [set(rows)]


def test_mixture_of_both_contents_of_a_restore_is_a_difference() -> None:
    assert ledger(Contents([1, 2]), Contents([5])).check([1, 5])


def test_copy_may_have_the_rows_that_were_written_meanwhile() -> None:
    source = ledger(Contents([1]))
    copy = source.copy()
    source.attempt(2)
    source.acknowledge(2)
    assert not copy.allows([1, 2])
    source.extend(copy)
    assert copy.allows([1])
    assert copy.allows([1, 2])
    assert not copy.allows([2])


@pytest.mark.parametrize(("is_certain", "old"), [(True, False), (False, True)])
def test_restore_may_have_the_rows_that_were_written_meanwhile(is_certain: bool, old: bool) -> None:
    branch, source = ledger(Contents([1])), ledger(Contents([5]))
    copy = source.copy()
    source.attempt(6)
    branch.restore(source, copy, is_certain=is_certain)
    for rows, expected in (([5], True), ([5, 6], True), ([1], old), ([1, 6], False)):
        assert (ledger(*branch.contents).check(rows) is None) == expected


def test_interrupted_campaign_leaves_no_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def interrupt(_run: Run) -> None:
        raise KeyboardInterrupt

    def make(**_options: str) -> str:
        return str(directory)

    directory = tmp_path / "campaign"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "mkdtemp", make)
    monkeypatch.setattr(logging, "disable", lambda: None)
    monkeypatch.setattr(sys, "argv", ["campaign", "servers"])
    monkeypatch.setitem(KINDS, "servers", KindOfCampaign(1, 1.0, interrupt))
    with pytest.raises(KeyboardInterrupt):
        main()
    assert not directory.exists()
