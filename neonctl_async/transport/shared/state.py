"""The slots of an account that many processes share. Pure: times are passed in.

A slot is occupied from its lease until one period after the response. All times are whole
milliseconds on the clock of the store.
"""

import msgspec

from neonctl_async.transport.shared.messages import Request

MINUTE = 60_000
"""The period of the limit of the account."""
SECOND = 1_000
"""The period of the limits of the routes."""
MINUTE_STEP = 250
"""Ends are rounded up to this step in the window of the minute, so that few entries are stored."""
SECOND_STEP = 10
"""Ends are rounded up to this step in the windows of the routes."""
FORGET = 15_000
"""The time after which the demand of a client that no longer reports is forgotten: three times the
longest delay between two polls of an operation."""
KEEP = 2 * MINUTE
"""The time after which the data of an unused account is deleted: then all slots are free."""

Ends = list[tuple[int, int]]
"""The times of responses and their numbers, sorted."""


class Lease(msgspec.Struct, array_like=True):
    """Slots of a route that a client may use, or that its requests in flight occupy."""

    route: str
    count: int
    expires_at: int
    """The latest time of the last response, even if the client is dead."""


class Lack(msgspec.Struct, array_like=True):
    """The slots of a route that a client waits for."""

    since: int
    calls: int
    polls: int
    until: int
    """The time at which the client loses its place in the queue."""


class Holder(msgspec.Struct, array_like=True):
    """A client."""

    seen_at: int
    calls: int
    polls_wanted: int
    lacks: dict[str, Lack] = {}
    """The slots that the client waits for, by route."""
    projects: int = 0


class State(msgspec.Struct, array_like=True):
    """The data of an account."""

    generation: str
    now: int
    """The time of the last exchange."""
    closed_until: int = 0
    """Nothing is leased before this time: other clients may still have to report."""
    calls_since_poll: int = 0
    minute: Ends = []
    routes: dict[str, Ends] = {}
    leases: dict[str, Lease] = {}
    """The leases by client and number."""
    holders: dict[str, Holder] = {}


def new_state(request: Request, now: int) -> State:
    """Return the data of an account that nobody has used."""
    return State(generation=f"{request.holder}@{now}", now=now)


def advance(state: State, now: int) -> None:
    """Move to a time: end the leases of dead clients, and delete what has slid out."""
    if now < state.now:
        _shift(state, now - state.now)
    state.now = now
    for name, lease in list(state.leases.items()):
        if lease.expires_at <= now:
            _add_end(state, lease.route, lease.expires_at, lease.count)
            del state.leases[name]
    state.minute = [end for end in state.minute if end[0] + MINUTE > now]
    for route, ends in list(state.routes.items()):
        state.routes[route] = [end for end in ends if end[0] + SECOND > now]
        if not state.routes[route]:
            del state.routes[route]
    for name, holder in list(state.holders.items()):
        for route, lack in list(holder.lacks.items()):
            if lack.until <= now:
                del holder.lacks[route]
        if holder.seen_at + FORGET <= now:
            del state.holders[name]


def _shift(state: State, by: int) -> None:
    """Move all times. The clock of the store was set back, and no time has passed."""
    state.closed_until += by
    state.minute = [(time + by, count) for time, count in state.minute]
    for route, ends in state.routes.items():
        state.routes[route] = [(time + by, count) for time, count in ends]
    for lease in state.leases.values():
        lease.expires_at += by
    for holder in state.holders.values():
        holder.seen_at += by
        for lack in holder.lacks.values():
            lack.since += by
            lack.until += by


def check_generation(state: State, request: Request, now: int) -> None:
    """Restore what a client knows of data that was lost, and wait for the others' reports."""
    if request.generation in {"", state.generation}:
        return
    missing = request.used - used_slots(state)
    if missing > 0:
        _insert(state.minute, now, missing, MINUTE_STEP)
    state.closed_until = max(state.closed_until, now + SECOND)


def settle(state: State, request: Request, now: int) -> None:
    """Apply the report of a client."""
    for ended in request.ended:
        _reduce(state, request.holder, ended.lease, ended.slots)
        _add_end(state, ended.route, now - ended.age, ended.slots)
    for returned in request.returned:
        _reduce(state, request.holder, returned.lease, returned.slots)
    for adopted in request.adopted:
        lease = Lease(adopted.route, adopted.slots, now + request.longest)
        state.leases[f"{request.holder}/{adopted.lease}"] = lease


def _reduce(state: State, holder: str, number: int, count: int) -> None:
    name = f"{holder}/{number}"
    if (lease := state.leases.get(name)) is not None:
        lease.count -= count
        if lease.count <= 0:
            del state.leases[name]


def _add_end(state: State, route: str, time: int, count: int) -> None:
    if time + MINUTE > state.now:
        _insert(state.minute, time, count, MINUTE_STEP)
    if time + SECOND > state.now:
        _insert(state.routes.setdefault(route, []), time, count, SECOND_STEP)


def _insert(ends: Ends, time: int, count: int, step: int) -> None:
    time = -(-time // step) * step
    index = len(ends)
    while index > 0 and ends[index - 1][0] > time:
        index -= 1
    if index > 0 and ends[index - 1][0] == time:
        ends[index - 1] = (time, ends[index - 1][1] + count)
    else:
        ends.insert(index, (time, count))


def used_slots(state: State) -> int:
    """Return the number of occupied slots of the minute."""
    leased = sum(lease.count for lease in state.leases.values())
    return leased + sum(count for _, count in state.minute)
