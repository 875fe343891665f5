"""The ledger of objects, and a short campaign of kills; ``make soak`` runs a long one."""

from pathlib import Path

import pytest

from tools.soak.campaign import Campaign
from tools.soak.ledger import Ledger, Register, State
from tools.soak.project import Project
from tools.soak.run import Run


def ledger(**states: State) -> Ledger:
    branches = Ledger("branch")
    for name, state in states.items():
        branches.confirm(name, state)
    return branches


def test_confirmed_object_must_exist_once() -> None:
    branches = ledger(a=State.PRESENT)
    assert branches.differences(["a"]) == []
    assert branches.differences([]) == ["branch a should be present"]
    assert branches.differences(["a", "a"]) == ["branch a exists 2 times"]


def test_deleted_object_must_not_exist() -> None:
    assert ledger(a=State.ABSENT).differences([]) == []
    assert ledger(a=State.ABSENT).differences(["a"]) == ["branch a should be absent"]


def test_object_of_a_request_without_a_response_may_exist_once() -> None:
    branches = Ledger("branch")
    branches.attempt("a")
    assert branches.differences([]) == branches.differences(["a"]) == []
    assert branches.differences(["a", "a"]) == ["branch a exists 2 times"]


def test_object_that_nobody_created_is_a_difference() -> None:
    assert Ledger("branch").differences(["a"]) == ["branch a is unknown"]


def test_value_is_the_confirmed_one_or_a_later_one() -> None:
    name = Register("the name", "1")
    name.attempt("2")
    assert name.differences("2") == []
    assert name.differences("1") == ["the name is 1, expected one of ['2']"]
    name.confirm("3")
    assert name.differences("2") == ["the name is 2, expected one of ['3']"]


def test_operation_has_one_final_status() -> None:
    run = Run()
    project = Project(run, "project")
    for status in ("running", "finished", "finished"):
        project.record([{"id": "op-1", "status": status}])
    assert run.violations == []
    project.record([{"id": "op-1", "status": "failed"}])
    assert len(run.violations) == 1


@pytest.mark.scale
@pytest.mark.process
async def test_killed_server_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "plane.db", writers=12, projects=3, seed=7)
    await campaign.run(kills=3, pause=0.4, seconds=1.0)
    assert campaign.state.violations == []
    assert campaign.state.statuses[201] > 12
    assert campaign.state.lost_responses > 0
