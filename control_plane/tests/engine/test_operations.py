"""Planned failures, and the states of operations in any order of requests and times."""

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any, TypeVar
from urllib.parse import quote

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from control_plane.tests.client import Client, state_of
from neonctl_local import Durations, LocalControlPlane, ManualClock
from neonctl_local.engine import operations

T = TypeVar("T")
FINAL = {"finished", "failed"}
ORDER = ("scheduling", "running", "failed, to be retried", "running again", "final")


def stage(operation: dict[str, Any]) -> int:
    """Return the progress of an operation, as an index of ``ORDER``."""
    if operation.get("retry_at"):
        return ORDER.index("failed, to be retried")
    if operation["status"] in FINAL:
        return ORDER.index("final")
    if operation["failures_count"]:
        return ORDER.index("running again")
    return ORDER.index(operation["status"])


class OperationStates(RuleBasedStateMachine):
    """A project with branches that are created and deleted, under a clock that jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        durations = Durations(default=1, by_action={"start_compute": 3}, scheduling=0.25)
        self.control_plane = LocalControlPlane(clock=self.clock, durations=durations, lock="none")
        self.known: dict[str, dict[str, Any]] = {}
        self.chains: list[list[str]] = []
        self.branches: list[str] = []
        self.project_id = ""

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop of the state machine."""
        return self.runner.run(coroutine)

    def teardown(self) -> None:
        self.run(self.close())
        self.runner.close()

    async def close(self) -> None:
        await self.api.close()
        await self.control_plane.stop()

    @initialize()
    def start(self) -> None:
        self.run(self.set_up())

    async def set_up(self) -> None:
        await self.control_plane.start()
        self.api = Client(self.control_plane)
        created = await self.api.project()
        self.project_id = created["project"]["id"]
        self.remember_operations(created)

    def remember_operations(self, response: Any) -> None:
        """Remember the operations of a response."""
        self.chains.append([operation["id"] for operation in response["operations"]])

    @rule(compute=st.booleans())
    def create_branch(self, compute: bool) -> None:
        created = self.run(self.api.branch(self.project_id, compute=compute))
        self.branches.append(created["branch"]["id"])
        self.remember_operations(created)

    @rule(data=st.data())
    def delete_branch(self, data: st.DataObject) -> None:
        if self.branches:
            branch_id = data.draw(st.sampled_from(self.branches))
            self.branches.remove(branch_id)
            path = f"/projects/{self.project_id}/branches/{branch_id}"
            self.remember_operations(self.run(self.api.request("DELETE", path)))

    @rule(
        action=st.sampled_from(["create_branch", "start_compute", "suspend_compute"]),
        retry_after=st.none() | st.sampled_from([0.5, 40.0]),
    )
    def fail_next(self, action: str, retry_after: float | None) -> None:
        self.run(self.control_plane.fail_next(action, retry_after=retry_after))

    @rule(seconds=st.sampled_from([0.1, 0.25, 1.0, 2.75, 400.0, 5 * 3600.0, 9 * 86400.0]))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def statuses_and_pages_are_consistent(self) -> None:
        if self.project_id:
            self.run(self.check())

    async def check(self) -> None:
        listed = await self.pages()
        ids = [operation["id"] for operation in listed]
        assert len(ids) == len(set(ids))
        assert set(ids) >= set(self.known), "an operation is missing"
        times = [operation["created_at"] for operation in listed]
        assert times == sorted(times, reverse=True)
        now = {operation["id"]: operation for operation in listed}
        for operation_id, before in self.known.items():
            after = now[operation_id]
            assert stage(after) >= stage(before), (before, after)
            if stage(before) == ORDER.index("final"):
                assert after == before
        for chain in self.chains:
            for first, second in pairwise(chain):
                if now[second]["status"] in {"running", "finished"}:
                    assert now[first]["status"] == "finished"
        self.known = now

    async def pages(self) -> list[dict[str, Any]]:
        """Return all operations, in pages of seven."""
        path = f"/projects/{self.project_id}/operations?limit=7"
        found: list[dict[str, Any]] = []
        page = await self.api.get(path)
        while page["operations"]:
            found += page["operations"]
            assert found[-1] not in found[:-1], "an operation is on two pages"
            cursor = quote(page["pagination"]["cursor"], safe="")
            page = await self.api.get(f"{path}&cursor={cursor}")
        return found


TestOperationStates = OperationStates.TestCase
TestOperationStates.settings = settings(max_examples=5, stateful_step_count=12, deadline=None)


async def test_planned_failure_also_fails_the_next_operation_of_the_request(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("create_branch", error="no room")
    await api.branch(project_id, compute=True)
    clock.advance(5)
    first, second = (await api.operations(project_id))[-2:]
    assert (first["status"], first["failures_count"], first["error"]) == ("failed", 1, "no room")
    assert (second["status"], second["failures_count"]) == ("failed", 0)
    assert (await api.branch(project_id))["operations"][0]["failures_count"] == 0
    clock.advance(5)
    assert (await api.operations(project_id))[-1]["status"] == "finished"


async def test_planned_failures_report_how_often_they_fired(api: Client, project_id: str) -> None:
    await api.control_plane.fail_next("create_branch", times=2)
    await api.control_plane.fail_next("delete_timeline")
    for fired in (0, 1, 2, 2):
        planned = await api.control_plane.planned_failures()
        assert [(failure.action, failure.times, failure.fired) for failure in planned] == [
            ("create_branch", 2, fired),
            ("delete_timeline", 1, 0),
        ]
        await api.branch(project_id)


async def test_failure_of_a_branch_ignores_its_first_operations_and_other_branches(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("start_compute", branch="two", after=1)
    failed: list[str] = []
    for name in ("one", "two"):
        branch_id = (await api.branch(project_id, name=name, compute=True))["branch"]["id"]
        clock.advance(5)
        for _ in range(2):
            [endpoint] = (await api.get(f"/projects/{project_id}/branches/{branch_id}/endpoints"))[
                "endpoints"
            ]
            action = "restart" if endpoint["current_state"] == "active" else "start"
            path = f"/projects/{project_id}/endpoints/{endpoint['id']}/{action}"
            await api.request("POST", path)
            clock.advance(5)
        failed += [
            f"{name} {operation['action']}"
            for operation in await api.operations(project_id)
            if operation["status"] == "failed" and operation["branch_id"] == branch_id
        ]
    assert failed == ["two start_compute"]


@pytest.mark.parametrize(
    ("action", "branch", "method"),
    [
        ("create_timeline", "main", "projects"),
        ("create_branch", "preview", "branches"),
        ("create_branch", "restored", "snapshots"),
    ],
)
async def test_creation_fails_by_the_name_of_the_new_branch(
    api: Client, clock: ManualClock, project_id: str, action: str, branch: str, method: str
) -> None:
    path = f"/projects/{project_id}"
    main = await api.main_branch(project_id)
    clock.advance(9)
    snapshot = await api.request("POST", f"{path}/branches/{main['id']}/snapshot")
    clock.advance(9)
    await api.control_plane.fail_next(action, branch=branch)
    match method:
        case "projects":
            created = await api.project()
        case "branches":
            created = await api.branch(project_id, name=branch)
        case _:
            restored = f"{path}/snapshots/{snapshot['snapshot']['id']}/restore"
            created = await api.request("POST", restored, {"name": branch})
    clock.advance(9)
    [first] = [
        operation
        for operation in await api.operations(created["branch"]["project_id"])
        if operation["id"] == created["operations"][0]["id"]
    ]
    assert (first["action"], first["status"]) == (action, "failed")


async def test_removed_planned_failure_does_not_fire(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    database = state_of(api.control_plane).database
    for error in ("first", "second"):
        await api.control_plane.fail_next("create_branch", error=error)
    first, second = await api.control_plane.planned_failures()
    await database.run(operations.remove_planned_failure, first.id)
    await database.run(operations.remove_planned_failure, first.id)
    assert await api.control_plane.planned_failures() == [second]
    await api.branch(project_id)
    clock.advance(2)
    assert (await api.operations(project_id))[-1]["error"] == "second"
    await database.run(operations.clear_planned_failures)
    assert await api.control_plane.planned_failures() == []


async def test_planned_failure_with_retry_after_is_retried(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("create_branch", retry_after=2.5)
    await api.branch(project_id)
    states: list[tuple[str, str | None]] = []
    for seconds in (1, 2, 0.5, 1):
        clock.advance(seconds)
        operation = (await api.operations(project_id))[-1]
        states.append((operation["status"], operation.get("retry_at")))
    assert states == [
        ("failed", "2026-01-01T00:00:03.500000Z"),
        ("failed", "2026-01-01T00:00:03.500000Z"),
        ("running", None),
        ("finished", None),
    ]
    assert operation["failures_count"] == 1


async def test_failed_operation_may_hide_its_retry(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("create_branch", retry_after=2.5, show_retry_at=False)
    await api.branch(project_id)
    states: list[tuple[str, int]] = []
    for seconds in (1, 2.4, 0.2, 1):
        clock.advance(seconds)
        operation = (await api.operations(project_id))[-1]
        assert "retry_at" not in operation
        states.append((operation["status"], operation["failures_count"]))
    assert states == [("failed", 1), ("failed", 1), ("running", 1), ("finished", 1)]


async def test_rejected_request_does_not_consume_a_planned_failure(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("create_branch")
    taken = {"branch": {"name": "main"}}
    refused = await api.send("POST", f"/projects/{project_id}/branches", taken)
    assert refused.status == 409
    await api.branch(project_id)
    clock.advance(2)
    assert (await api.operations(project_id))[-1]["status"] == "failed"


@pytest.mark.parametrize("status", ["error", "cancelled", "skipped"])
async def test_planned_failure_can_have_another_final_status(
    api: Client, clock: ManualClock, project_id: str, status: str
) -> None:
    await api.control_plane.fail_next("create_branch", status=status)
    await api.branch(project_id)
    clock.advance(2)
    assert (await api.operations(project_id))[-1]["status"] == status
