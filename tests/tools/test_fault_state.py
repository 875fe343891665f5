"""Results that contradict the final state of the control plane in a fault campaign."""

import pytest

from neonctl_async import NotFoundError
from tests.support.records import PROJECT, JsonObject, operation, operation_json
from tools.faults.callers import Outcome
from tools.faults.final_state import FinalState
from tools.faults.log import FaultLog


def state_of(*operations: JsonObject, branches: int = 1) -> FinalState:
    """Return a state with branches of the same name and with operations of the first branch."""
    state = FinalState()
    state.created = {("branch", "a"): [f"br-{number}" for number in range(1, branches + 1)]}
    for record in operations:
        state.operations[str(record["id"])] = {
            name: str(value) for name, value in (record | {"branch_id": "br-1"}).items()
        }
    return state


def created(**fields: object) -> Outcome:
    outcome = Outcome(kind="branch", name="a", project_id=PROJECT, id="br-1")
    outcome.operations = [operation()]
    for name, value in fields.items():
        setattr(outcome, name, value)
    return outcome


FINISHED = operation_json(status="finished")
NOT_FOUND = NotFoundError(status=404, message="not found", method="GET", path="/x")


@pytest.mark.parametrize("status", ["running", "finished"])
@pytest.mark.parametrize("action", ["suspend_compute", "check_availability"])
def test_background_work_of_the_control_plane_is_no_violation(action: str, status: str) -> None:
    state = state_of(FINISHED, operation_json("op-2", status, action=action))
    assert list(state.violations([created()], FaultLog())) == []


@pytest.mark.parametrize(
    ("state", "outcome", "violation"),
    [
        (state_of(FINISHED, operation_json("op-2")), created(), "the operations {'op-1'} instead"),
        (state_of(operation_json()), created(), "an operation is not finished"),
        (state_of(FINISHED, branches=2), created(), "created 2 times"),
        (state_of(branches=0), created(operations=[]), "[] exist"),
        (state_of(), created(id=None, error=NOT_FOUND), "reported as not created"),
    ],
)
def test_result_that_contradicts_the_state_is_a_violation(
    state: FinalState, outcome: Outcome, violation: str
) -> None:
    assert violation in "\n".join(state.violations([outcome], FaultLog()))
