"""Messages of clients to the store of a shared budget."""

from typing import Any

from neonctl_async.transport.shared.messages import Reply, Request, Slot, Want
from tests.transport.shared.histories import LONGEST, ROUTES

ROUTE = ROUTES[0]


def request_of(client: str, route: str = ROUTE, wants: int = 0, **values: Any) -> Request:
    """Return the request of a client for slots with the numbers from ``first``, or 1, on."""
    first, limit = values.pop("first", 1), values.pop("route_limit", 40)
    want = Want(route, limit, list(range(first, first + wants)))
    settings: dict[str, Any] = {"limit": 700, **values}
    return Request(client=client, longest=LONGEST, wants=[want] if wants else [], **settings)


def ends(count: int, route: str = ROUTE, age: int = 0) -> list[Slot]:
    """Return the ends of the slots with the numbers from 1 on."""
    return [Slot(number, route, age) for number in range(1, count + 1)]


def granted(reply: Reply) -> int:
    """Return the number of slots that can be used at once."""
    return sum(delay == 0 for _, delay in reply.grants)
