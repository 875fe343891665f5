"""The pollers of a client and their shared forecast."""

import asyncio
from collections.abc import Iterable

import anyio

from neonctl_async.clock import loop_time
from neonctl_async.config import PollPolicy
from neonctl_async.errors import ClientClosedError
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.waiting.operation_wait import OperationWait
from neonctl_async.waiting.poll_plan import PollPlan
from neonctl_async.waiting.poller import Poller
from neonctl_async.waiting.project_operations import ProjectOperations, ReleasedOperations
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.timing.forecast import Forecast
from neonctl_async.waiting.timing.pace import Pace
from neonctl_async.waiting.tracked import TrackedOperation


class PollerRegistry:
    """The pollers of a client by project id. A poller exists only while it tracks an operation."""

    def __init__(
        self,
        source: OperationSource,
        policy: PollPolicy,
        dispatcher: HookDispatcher,
    ) -> None:
        self._source = source
        self._policy = policy
        self._dispatcher = dispatcher
        self._forecast = Forecast()
        self._pace = Pace(source.budget)
        self._by_project: dict[str, Poller] = {}
        self._released = ReleasedOperations()
        self._closed = False

    def add(
        self, ref: OperationRef, record: Operation | None, wait: OperationWait
    ) -> TrackedOperation:
        """Track an operation for a wait, and deliver all its changes to it.

        ``record`` is the newest record that the caller has. Raises ClientClosedError if the client
        is closed.
        """
        if self._closed:
            raise ClientClosedError("the client is closed: create a new NeonClient")
        poller = self._by_project.get(ref.project_id)
        if poller is None:
            poller = self._new_poller(ref.project_id)
            self._by_project[ref.project_id] = poller
        return poller.add(ref, record, wait)

    def stretch(self) -> float:
        """Return the factor by which polls are delayed; 1 if the rate budget suffices."""
        return max(self._pace.stretch(), 1.0)

    def note_history(self, project_id: str, operations: Iterable[Operation]) -> None:
        """Record the durations of a project's finished operations, unless they are known."""
        if not self._forecast.histories.has(project_id):
            self._forecast.histories.note(project_id, operations)

    def require(self, wait: OperationWait) -> None:
        """Poll at once for a wait that has woken after its deadline."""
        for project_id in {ref.project_id for ref in wait.refs}:
            if (poller := self._by_project.get(project_id)) is not None:
                poller.require(wait)

    async def release(self, wait: OperationWait) -> None:
        """Stop deliveries to a wait, and stop pollers without tracked operations."""
        by_project: dict[str, list[OperationRef]] = {}
        for ref in wait.refs:
            by_project.setdefault(ref.project_id, []).append(ref)
        idle: list[Poller] = []
        for project_id, project_refs in by_project.items():
            poller = self._by_project.get(project_id)
            if poller is not None:
                poller.remove(project_refs, wait)
                if poller.is_idle:
                    idle.append(self._by_project.pop(project_id))
        await _stop(idle)

    async def aclose(self) -> None:
        """Stop every poller. Pending waits raise ClientClosedError."""
        self._closed = True
        pollers = list(self._by_project.values())
        self._by_project.clear()
        await _stop(pollers)

    def _new_poller(self, project_id: str) -> Poller:
        plan = PollPlan(self._policy, self._forecast, self._pace)
        operations = ProjectOperations(
            plan, self._policy, self._source.server_now, self._dispatcher.status, self._released
        )
        return Poller(project_id, self._source, plan, operations, self._update_forecast)

    def _update_forecast(self) -> None:
        """Update the forecast. If it changes, all pollers plan again."""
        if self._forecast.update(loop_time()):
            for poller in self._by_project.values():
                poller.replan()


async def _stop(pollers: Iterable[Poller]) -> None:
    reason = ClientClosedError("the client was closed during a wait for operations")
    tasks = [task for poller in pollers if (task := poller.stop(reason)) is not None]
    if tasks:
        # Shielded, so that a cancelled wait leaves no poller behind. The tasks finish at once.
        with anyio.CancelScope(shield=True):
            await asyncio.wait(tasks)
