"""Messages of clients to the store of a shared budget."""

from typing import Any

from neonctl_async.transport.shared.messages import Reply, Request, Want

ROUTE = "GET /projects"


def request_of(holder: str, **values: Any) -> Request:
    settings: dict[str, Any] = {
        "generation": "",
        "used": 0,
        "limit": 700,
        "longest": 30_000,
        "calls": 0,
        "polls_wanted": 0,
    }
    return Request(holder=holder, **(settings | values))


def wants_calls(
    holder: str, calls: int, *, lease: int = 1, route: str = ROUTE, spare: int = 0, **values: Any
) -> Request:
    """Return the request of a client that needs slots for calls."""
    want = Want(lease, route, values.pop("route_limit", 40), calls, 0, spare)
    return request_of(holder, wants=[want], **values)


def wants_polls(
    holder: str, polls: int, *, lease: int = 1, route: str = ROUTE, **values: Any
) -> Request:
    """Return the request of a client that needs slots for polls."""
    want = Want(lease, route, values.pop("route_limit", 40), 0, polls, 0)
    return request_of(holder, wants=[want], **values)


def leased(reply: Reply) -> int:
    """Return the number of leased slots that can be used at once."""
    return sum(grant.slots for grant in reply.grants if grant.delay == 0)
