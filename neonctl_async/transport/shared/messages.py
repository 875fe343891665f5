"""The messages between a client and the store of a shared rate budget.

Times are whole milliseconds. Points in time are sent as ages and delays, because the clocks of two
machines differ.
"""

from typing import NamedTuple, Protocol

import msgspec

EXCHANGE_SECONDS = 1.0
"""The longest time that requests wait for the store. With half of this time, clients on a busy
machine lost a store that others could still use, and together they exceeded the limits."""


class Slot(NamedTuple):
    """A place in the rate limit that a client's request occupies."""

    number: int
    """The number that the client gave the slot."""
    route: str
    age: int
    """The time since the response. A negative age is the longest time until the response."""


class Want(NamedTuple):
    """Slots of a route that a client needs now."""

    route: str
    limit: int
    """The limit of the route per second; 0 means no limit."""
    numbers: list[int]
    """The number of each slot, which the client chooses."""


class Request(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What a client reports, and the slots that it needs."""

    client: str
    """The random name of the client, in hexadecimal digits."""
    limit: int
    """The limit per minute; 0 means no limit."""
    longest: int
    """The longest time that a request of the client can take."""
    slots: list[Slot] = []
    """The slots whose ends the client reports, and the slots of requests sent without the store."""
    returned: list[Slot] = []
    """Slots whose request was not sent."""
    wants: list[Want] = []


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """The slots that a client gets, and what it needs to know about the account."""

    used: int
    """The number of occupied slots in the minute, including the new ones."""
    clients: int
    """The number of clients with occupied slots."""
    unknown: int
    """The number of reported slots that the store did not know. If it is not 0, no slot is
    granted."""
    grants: list[tuple[int, int]]
    """The number of each granted slot, and the delay after which it may be used."""
    denials: list[tuple[str, int]]
    """Each route that gets no slot now, and the minimum delay until it can get one."""
    refills: list[tuple[int, int]]
    """The delays after which per-minute slots become free, each with the number of slots."""


class Store(Protocol):
    """A store that many processes share. Any exception means that the store cannot be used now."""

    @property
    def name(self) -> str:
        """The address of the store, without secrets."""
        ...

    async def exchange(self, request: Request) -> Reply:
        """Record the ends of requests, and grant slots. Either everything is applied or nothing."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...
