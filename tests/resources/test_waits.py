import pytest

from neonctl_async import ClientClosedError, PollPolicy
from neonctl_async.connections.addresses import address_of_host
from neonctl_async.connections.waits import Target
from neonctl_async.resources.waits import WaitsOnDemand
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.waiting.deadline import Deadline
from neonctl_async.waiting.waiter import Waiter
from tests.support.idle_source import IdleSource


async def test_wait_for_connections_after_the_client_is_closed_ends_at_once() -> None:
    source, dispatcher = IdleSource(), HookDispatcher(())
    waiter = Waiter(source, PollPolicy(), dispatcher)
    waits = WaitsOnDemand(source, waiter, PollPolicy(), dispatcher)
    await waits.aclose()
    target = Target("ep-a-1", address_of_host("127.0.0.1"))
    with pytest.raises(ClientClosedError):
        await waits.connections.wait([target], Deadline.after(None))
