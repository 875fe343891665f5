"""The pollers of a client, and what they learn from each other."""

import asyncio
from collections.abc import Iterable

import anyio

from neonctl_async.config import PollPolicy
from neonctl_async.errors import ClientClosedError
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.waiting.change_queue import ChangeQueue
from neonctl_async.waiting.forecast import Forecast
from neonctl_async.waiting.poller import Poller
from neonctl_async.waiting.source import OperationSource


class PollerRegistry:
    """The pollers of a client, by project; one exists only while something is awaited."""

    def __init__(
        self, source: OperationSource, policy: PollPolicy, dispatcher: HookDispatcher
    ) -> None:
        self._source = source
        self._policy = policy
        self._dispatcher = dispatcher
        self._forecast = Forecast()
        self._by_project: dict[str, Poller] = {}
        self._closed = False

    def add(self, ref: OperationRef, record: Operation | None, queue: ChangeQueue) -> None:
        """Deliver to ``mailbox`` what becomes of an operation.

        Raises ClientClosedError if the client is closed.
        """
        if self._closed:
            raise ClientClosedError("the client is closed: nothing can be awaited")
        poller = self._by_project.get(ref.project_id)
        if poller is None:
            poller = Poller(
                ref.project_id,
                self._source,
                self._policy,
                self._forecast,
                dispatcher=self._dispatcher,
                update=self._update,
            )
            self._by_project[ref.project_id] = poller
        poller.add(ref, record, queue)

    async def release(self, refs: Iterable[OperationRef], queue: ChangeQueue) -> None:
        """Forget ``mailbox``; pollers that nobody needs any more are ended."""
        by_project: dict[str, list[OperationRef]] = {}
        for ref in refs:
            by_project.setdefault(ref.project_id, []).append(ref)
        idle: list[Poller] = []
        for project_id, ones in by_project.items():
            poller = self._by_project.get(project_id)
            if poller is not None:
                poller.remove(ones, queue)
                if poller.is_idle:
                    idle.append(self._by_project.pop(project_id))
        await _stop(idle)

    async def aclose(self) -> None:
        """End every poller; what still waits ends with ClientClosedError."""
        self._closed = True
        pollers = list(self._by_project.values())
        self._by_project.clear()
        await _stop(pollers)

    def _update(self) -> bool:
        """Take in what was learned, for all projects; whether all planned their looks anew."""
        is_news = self._forecast.update(asyncio.get_running_loop().time())
        if is_news:
            for poller in self._by_project.values():
                poller.plan()
        return is_news


async def _stop(pollers: Iterable[Poller]) -> None:
    reason = ClientClosedError("the client was closed while operations were awaited")
    tasks = [task for poller in pollers if (task := poller.stop(reason)) is not None]
    if tasks:
        # A wait that is being cancelled still sees its poller off; that takes no time.
        with anyio.CancelScope(shield=True):
            await asyncio.wait(tasks)
