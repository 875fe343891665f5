"""The messages between a client and the store of a shared rate budget.

Times are whole milliseconds. Points in time are sent as ages and delays, because the clocks of two
machines differ.
"""

from typing import NamedTuple, Protocol

import msgspec

EXCHANGE_SECONDS = 1.0
"""The longest time that requests wait for the store. With half of it, clients on a busy machine
lost a store that others kept, and together they exceeded the limits."""


class Slot(NamedTuple):
    """A slot of a client."""

    number: int
    """The number that the client gave it."""
    route: str
    age: int
    """The time since the response. If negative, the longest time until the response."""


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
    """The longest time that a request of the client takes."""
    slots: list[Slot] = []
    """The ends of slots that the store should know, and of requests sent without it."""
    returned: list[Slot] = []
    """Slots whose request was not sent."""
    wants: list[Want] = []


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """The slots that a client gets, and what it needs to know about the account."""

    used: int
    """The occupied slots of the minute, including the new ones."""
    clients: int
    """The number of clients with occupied slots."""
    unknown: int
    """The number of reported slots that the store did not know. If it is not 0, none is granted."""
    grants: list[tuple[int, int]]
    """The number of each granted slot, and the delay after which it may be used."""
    denials: list[tuple[str, int]]
    """Routes without a free slot, and the delay until the next one at the earliest."""
    refills: list[tuple[int, int]]
    """The delays after which slots of the minute become free, and how many."""


class Store(Protocol):
    """A store that many processes share. Any exception means that it cannot be used now."""

    @property
    def name(self) -> str:
        """The address of the store, without secrets."""
        ...

    async def exchange(self, request: Request) -> Reply:
        """Record ends, and take slots. All or nothing is applied."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...
