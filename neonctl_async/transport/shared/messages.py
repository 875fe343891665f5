"""The messages between a client and the store of a shared rate budget.

Times are whole milliseconds. Points in time are sent as ages and delays, because the clocks of two
machines differ.
"""

from typing import NamedTuple, Protocol

import msgspec

EXCHANGE_SECONDS = 0.5
"""The longest time that requests wait for the store: more than a round trip around the world."""


class Want(NamedTuple):
    """Slots of a route that a client would lease."""

    lease: int
    """The number of the lease, which the client chooses."""
    route: str
    limit: int
    """The limit of the route per second, 0 without one."""
    calls: int
    polls: int
    spare: int
    """Slots for requests that will probably follow, if nobody else needs them."""


class Ended(NamedTuple):
    """Requests with a response. Their slots slide out one period later."""

    lease: int
    """The lease that the slots belong to, 0 without one."""
    route: str
    age: int
    """The time since the responses."""
    slots: int


class Adopted(NamedTuple):
    """Requests in flight that were sent without a lease, while the store was lost."""

    lease: int
    route: str
    slots: int


class Returned(NamedTuple):
    """Slots of a lease that were not used."""

    lease: int
    slots: int


class Request(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The report of a client and its wishes."""

    holder: str
    """The random name of the client."""
    generation: str
    """The generation that the client knows from the last minute, or an empty text."""
    used: int
    """The occupied slots of the minute that the client knows of."""
    limit: int
    """The limit per minute, 0 without one."""
    longest: int
    """The longest time that a request of the client takes."""
    calls: int
    """The calls of the client that wait for a slot."""
    polls_wanted: int
    """The polls that the waits of the client will probably need."""
    ended: list[Ended] = []
    returned: list[Returned] = []
    adopted: list[Adopted] = []
    wants: list[Want] = []
    projects: int = 0
    """The projects of the client with pending operations."""


class Grant(NamedTuple):
    """Slots that the client may use: ``delay`` from now on, and then for ``Reply.valid``."""

    lease: int
    delay: int
    slots: int


class Denial(NamedTuple):
    """A route that has too few slots, and the delay after which the client may try again."""

    route: str
    delay: int


class Refill(NamedTuple):
    """Slots of the minute that slide out after a delay."""

    delay: int
    slots: int


class Reply(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The leases of a client, and what it has to know about the account."""

    generation: str
    """The name of the store's data. A new generation means that the data was lost."""
    used: int
    """The occupied slots of the minute, including leases."""
    valid: int
    """The time for which each slot may be used."""
    holders: int
    """The number of active clients, including this one."""
    calls: int
    """The calls of other clients that wait for a slot."""
    polls_wanted: int
    """The polls that the waits of other clients will probably need."""
    grants: list[Grant]
    denials: list[Denial]
    refills: list[Refill]
    projects: int = 0
    """The projects of other clients with pending operations."""


class Store(Protocol):
    """A place that many processes reach. Any exception means that it cannot be used now."""

    @property
    def name(self) -> str:
        """The address of the store, without secrets."""
        ...

    async def exchange(self, request: Request) -> Reply:
        """Apply a report and return the leases. All or nothing is applied."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...
