"""The life of operations, driven by hypothesis: whatever is asked and whenever it is looked at."""

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any, TypeVar
from urllib.parse import quote

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from neonctl_async.local import Durations, LocalControlPlane, ManualClock
from tests.local.client import Client

T = TypeVar("T")
FINAL = {"finished", "failed"}
ORDER = ("scheduling", "running", "failed, to be retried", "running again", "final")


def stage(operation: dict[str, Any]) -> int:
    """How far an operation has come."""
    if operation.get("retry_at"):
        return ORDER.index("failed, to be retried")
    if operation["status"] in FINAL:
        return ORDER.index("final")
    if operation["failures_count"]:
        return ORDER.index("running again")
    return ORDER.index(operation["status"])


class OperationStates(RuleBasedStateMachine):
    """A project to which things happen, under a clock that jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        durations = Durations(default=1, by_action={"start_compute": 3}, scheduling=0.25)
        self.control_plane = LocalControlPlane(clock=self.clock, durations=durations)
        self.known: dict[str, dict[str, Any]] = {}
        self.chains: list[list[str]] = []
        self.branches: list[str] = []
        self.project_id = ""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the machine's own loop."""
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.close())
        self.runner.close()

    async def close(self) -> None:
        await self.api.__aexit__(None, None, None)
        await self.control_plane.stop()

    @initialize()
    def start(self) -> None:
        self.run(self.begin())

    async def begin(self) -> None:
        await self.control_plane.start()
        self.api = Client(self.control_plane)
        made = await self.api.project()
        self.project_id = made["project"]["id"]
        self.announce(made)

    def announce(self, answer: Any) -> None:
        """Remember the operations of an answer."""
        self.chains.append([operation["id"] for operation in answer["operations"]])

    @rule(compute=st.booleans())
    def create_branch(self, compute: bool) -> None:
        created = self.run(self.api.branch(self.project_id, compute=compute))
        self.branches.append(created["branch"]["id"])
        self.announce(created)

    @rule(data=st.data())
    def delete_branch(self, data: st.DataObject) -> None:
        if self.branches:
            branch_id = data.draw(st.sampled_from(self.branches))
            self.branches.remove(branch_id)
            path = f"/projects/{self.project_id}/branches/{branch_id}"
            self.announce(self.run(self.api.done("DELETE", path)))

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
    def the_records_obey_the_rules(self) -> None:
        if self.project_id:
            self.run(self.check())

    async def check(self) -> None:
        listed = await self.pages()
        ids = [operation["id"] for operation in listed]
        assert len(ids) == len(set(ids))
        assert set(ids) >= set(self.known), "an operation is gone"
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
        """The whole list, in pages that end in odd places."""
        path = f"/projects/{self.project_id}/operations?limit=7"
        found: list[dict[str, Any]] = []
        page = await self.api.get(path)
        while page["operations"]:
            found += page["operations"]
            assert found[-1] not in found[:-1], "a page repeats"
            cursor = quote(page["pagination"]["cursor"], safe="")
            page = await self.api.get(f"{path}&cursor={cursor}")
        return found


TestOperationStates = OperationStates.TestCase
TestOperationStates.settings = settings(max_examples=5, stateful_step_count=12, deadline=None)
