"""Random histories of clients that share an account, killed and late ones included."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import strategies as st

from neonctl_async.transport.shared.messages import Reply, Request, Slot, Want
from neonctl_async.transport.shared.table import VALID

LONGEST = 3_000
"""The longest time of a request, in milliseconds."""
ROUTES = ("GET /a", "GET /b")
START = 1_700_000_000_000


class Step(NamedTuple):
    """A client sends requests, receives responses, and makes an exchange with the store."""

    delay: int
    """The time since the last step."""
    client: int
    route: int
    wants: int
    uses: int
    ends: int
    returns: bool
    dies: bool


DELAYS = (0, 1, 7, 40, 300, 1000, 2500, 9000, 40_000)


def histories(
    *, steps: int = 60, delays: tuple[int, ...] = DELAYS
) -> st.SearchStrategy[list[Step]]:
    """Return a strategy of histories: bursts, quiet times, and clients that die."""
    step = st.builds(
        Step,
        delay=st.sampled_from(delays),
        client=st.integers(0, 3),
        route=st.integers(0, 1),
        wants=st.sampled_from((0, 1, 2, 5, 30)),
        uses=st.sampled_from((0, 1, 3, 30)),
        ends=st.sampled_from((0, 1, 3, 30)),
        returns=st.booleans(),
        dies=st.sampled_from((False,) * 9 + (True,)),
    )
    return st.lists(step, min_size=1, max_size=steps)


@dataclass
class Held:
    """A slot that a client may use in a time, or that its request occupies."""

    number: int
    route: str
    usable_at: int
    sent_at: int = 0


@dataclass
class Client:
    """A client that uses its slots as it likes, within their rules."""

    name: str
    held: list[Held] = field(default_factory=list[Held])
    in_flight: list[Held] = field(default_factory=list[Held])
    ended: list[tuple[Held, int]] = field(default_factory=list[tuple[Held, int]])
    numbers: int = 0


@dataclass
class World:
    """Clients, the store and the times at which requests were in flight."""

    exchange: Callable[[Request, int], Reply]
    limit: int = 12
    route_limit: int = 4
    now: int = START
    clients: dict[int, Client] = field(default_factory=dict[int, Client])
    requests: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])
    """The route, the start and the end of each request."""
    replies: list[Reply] = field(default_factory=list[Reply])
    born: int = 0

    def run(self, history: list[Step]) -> "World":
        for step in history:
            self._step(step)
        for client in self.clients.values():
            self._end(client, len(client.in_flight))
        return self

    def _step(self, step: Step) -> None:
        self.now += step.delay
        client = self._client(step.client)
        for other in self.clients.values():  # no request takes longer
            overdue = [one for one in other.in_flight if one.sent_at + LONGEST <= self.now]
            for slot in overdue:
                self._end_one(other, slot, slot.sent_at + LONGEST)
        self._use(client, step.uses)
        self._end(client, step.ends)
        if step.dies:
            for slot in client.in_flight:  # its requests arrive nevertheless
                self.requests.append((slot.route, slot.sent_at, slot.sent_at + LONGEST))
            del self.clients[step.client]
            return
        self._ask(client, step)

    def _client(self, number: int) -> Client:
        if number not in self.clients:
            self.born += 1
            self.clients[number] = Client(f"{self.born:08x}")
        return self.clients[number]

    def _use(self, client: Client, count: int) -> None:
        usable = [one for one in client.held if one.usable_at <= self.now < one.usable_at + VALID]
        for slot in usable[:count]:
            client.held.remove(slot)
            slot.sent_at = self.now
            client.in_flight.append(slot)

    def _end(self, client: Client, count: int) -> None:
        for slot in client.in_flight[:count]:
            self._end_one(client, slot, self.now)

    def _end_one(self, client: Client, slot: Held, time: int) -> None:
        client.in_flight.remove(slot)
        self.requests.append((slot.route, slot.sent_at, time))
        client.ended.append((slot, time))

    def _ask(self, client: Client, step: Step) -> None:
        unused = [one for one in client.held if step.returns or one.usable_at + VALID <= self.now]
        client.held = [one for one in client.held if one not in unused]
        numbers = list(range(client.numbers, client.numbers + step.wants))
        client.numbers += step.wants
        route = ROUTES[step.route]
        ended = [(one, time) for one, time in client.ended if time + 60_000 > self.now]
        request = Request(
            client=client.name,
            limit=self.limit,
            longest=LONGEST,
            slots=[Slot(one.number, one.route, self.now - time) for one, time in ended],
            returned=[Slot(one.number, one.route, 0) for one in unused],
            wants=[Want(route, self.route_limit, numbers)],
        )
        client.ended.clear()
        reply = self.exchange(request, self.now)
        assert reply.unknown == 0
        self.replies.append(reply)
        client.held += [Held(number, route, self.now + delay) for number, delay in reply.grants]


def most_in_window(requests: list[tuple[int, int]], period: int) -> int:
    """Return the most requests that Neon may have counted in any window of this length.

    Neon counts a request at some time between its start and its end.
    """
    return max(
        (
            sum(start <= time and end > time - period for start, end in requests)
            for time in [start for start, _ in requests]
        ),
        default=0,
    )
