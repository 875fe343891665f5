"""The waits of a client for states and for connections, imported when they are first used."""

from functools import cached_property
from typing import TYPE_CHECKING

from neonctl_async.config import PollPolicy
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.waiter import Waiter

if TYPE_CHECKING:
    from neonctl_async.connections.waits import ConnectionWaits
    from neonctl_async.waiting.states.waits import StateWaits


class WaitsOnDemand:
    """Creates the waits that a program uses, and closes them with the client."""

    def __init__(
        self,
        source: OperationSource,
        waiter: Waiter,
        policy: PollPolicy,
        dispatcher: HookDispatcher,
    ) -> None:
        self._source = source
        self._waiter = waiter
        self._policy = policy
        self._dispatcher = dispatcher
        self._is_closed = False

    @cached_property
    def states(self) -> "StateWaits":
        """The waits for states of branches, computes and projects."""
        from neonctl_async.waiting.states.waits import StateWaits

        return StateWaits(self._source, self._policy, self._waiter, self._dispatcher)

    @cached_property
    def connections(self) -> "ConnectionWaits":
        """The waits for connections to computes."""
        from neonctl_async.connections.waits import ConnectionWaits

        waits = ConnectionWaits(self._policy, self._dispatcher)
        if self._is_closed:
            waits.close()
        return waits

    async def aclose(self) -> None:
        """End all waits with ClientClosedError."""
        self._is_closed = True
        created = vars(self)
        if "connections" in created:
            self.connections.close()
        if "states" in created:
            await self.states.aclose()
