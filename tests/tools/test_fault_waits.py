"""The ends of waits that a fault campaign rejects."""

from collections.abc import Callable, Sequence
from datetime import timedelta

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
from tests.support.records import operation
from tools.faults.callers import WAIT, Outcome
from tools.faults.log import FaultLog
from tools.faults.waits import HANG_SECONDS, wrong_waits


def outcome(error: NeonError | None, **fields: object) -> Outcome:
    known = {"kind": "branch", "name": "a", "id": "br-1", "requests": ["request"], **fields}
    return msgspec.structs.replace(Outcome(kind="branch", name="a"), error=error, **known)


def log_of(*terminal: str, failed: Sequence[str] = ()) -> FaultLog:
    log = FaultLog()
    log.failed.update(failed)
    log.unchanged.add("request")
    log.add_terminal_records("request", terminal)
    return log


def wait_of(seconds: float) -> WaitEnded:
    started = WaitStarted(operations=(), timeout=WAIT)
    return WaitEnded(wait=started, unsuccessful=0, pending=0, error=None, seconds=seconds)


def failure() -> NeonError:
    return OperationFailedError(failed=[operation(status="failed")], settled=[], pending=[])


def timeout() -> NeonError:
    return WaitTimeoutError(timeout=WAIT, settled=[], pending=[operation()], last_error=None)


def not_found() -> NeonError:
    return NotFoundError(status=404, message="not found", method="GET", path="/x")


@pytest.mark.parametrize(
    ("error_of", "fields", "log", "violation"),
    [
        (lambda: None, {"too_early": ["op-1"]}, log_of(), "had not finished"),
        (lambda: None, {"operations": [operation()]}, log_of(failed=["op-1"]), "failed"),
        (not_found, {}, log_of(), "a transient 404"),
        (failure, {"wait": wait_of(1.0)}, log_of(), "which did not fail"),
        (timeout, {"received": {"request": HANG_SECONDS + 0.1}}, log_of("op-1"), "was known for"),
    ],
)
def test_wrong_ends_of_waits_are_violations(
    error_of: Callable[[], NeonError | None],
    fields: dict[str, object],
    log: FaultLog,
    violation: str,
) -> None:
    [found] = wrong_waits(outcome(error_of(), **fields), log)
    assert violation in found


@pytest.mark.parametrize(
    ("error_of", "fields", "log"),
    [
        (lambda: None, {"operations": [operation()]}, log_of("op-1")),
        (not_found, {"id": None}, log_of()),
        (failure, {"wait": wait_of(1.0)}, log_of(failed=["op-1"])),
        (failure, {"wait": wait_of(WAIT)}, log_of()),
        (timeout, {"received": {"request": HANG_SECONDS - 0.1}}, log_of("op-1")),
        (timeout, {"received": {"request": WAIT}}, log_of("op-2")),
        (timeout, {"received": {}}, log_of("op-1")),
    ],
)
def test_right_ends_of_waits_are_no_violations(
    error_of: Callable[[], NeonError | None], fields: dict[str, object], log: FaultLog
) -> None:
    assert list(wrong_waits(outcome(error_of(), **fields), log)) == []


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
    assert len(list(wrong_waits(outcome(None, changes=changes), log_of()))) == violations
