"""Laws of the scheduler that hold for every history of requests."""

import math
from collections.abc import Callable
from typing import TypeAlias

from hypothesis import example, given, settings
from hypothesis import strategies as st

from neonctl_async import RateBudget
from tests.transport.scheduled_requests import Requests

Action: TypeAlias = tuple[str, float, int]

ROUTES = ("GET /a", "GET /slow", "POST /a", "POST /slow")
PRESETS = st.builds(
    RateBudget,
    per_minute=st.one_of(st.none(), st.integers(1, 50)),
    per_route_per_second=st.one_of(st.none(), st.integers(1, 5)),
    route_limits=st.just({"GET /slow": 1, "POST /slow": 1}),
)


def _pick(requests: Requests, number: int) -> None:
    if requests.in_flight:
        requests.release(requests.in_flight[number % len(requests.in_flight)])


def _cancel(requests: Requests, number: int) -> None:
    if requests.in_flight:
        requests.cancel(requests.in_flight[number % len(requests.in_flight)])


def _withdraw(requests: Requests, number: int) -> None:
    if requests.waiting:
        requests.withdraw(requests.waiting[number % len(requests.waiting)])


def _hold_back(requests: Requests, number: int) -> None:
    requests.hold_back(None if number % 3 == 0 else number / 4)


def _add(requests: Requests, number: int) -> None:
    for _ in range(number % 7):
        requests.add(ROUTES[number % 4], is_poll=number % 4 < 2 and number % 3 == 0)


ACTIONS: dict[str, Callable[[Requests, int], None]] = {
    "add": _add,
    "add more": _add,
    "release": _pick,
    "release all": lambda requests, _number: requests.release_all(),
    "cancel": _cancel,
    "withdraw": _withdraw,
    "hold back": _hold_back,
    "pending": lambda requests, number: requests.scheduler.note_wanted(
        f"project-{number // 3}", number % 3
    ),
}
steps = st.tuples(
    st.sampled_from(sorted(ACTIONS)),
    st.one_of(st.just(0.0), st.floats(0, 2), st.floats(0, 100)),
    st.integers(0, 60),
)


@example(
    RateBudget.unlimited(),
    1,
    [("hold back", 1.0, 0), *[("add", 1 / 3, number) for number in (0, 0, 1)]],
)
@given(PRESETS, st.integers(1, 6), st.lists(steps, max_size=40))
@settings(max_examples=60)
def test_every_request_is_sent_once_and_within_the_limits(
    limits: RateBudget, connections: int, actions: list[Action]
) -> None:
    requests = Requests(limits, connections)
    for action, seconds, number in actions:
        requests.give_out_until(requests.now + seconds)
        ACTIONS[action](requests, number)
    # Responses arrive at once now, and no requests are added. Each that waits has to be sent.
    waiting = list(requests.waiting)
    for _ in range(20 * (len(waiting) + len(actions) + 1)):
        requests.release_all()
        wake_at = requests.give_out()
        if not requests.in_flight:
            if wake_at == math.inf:
                break
            requests.now = wake_at
    assert requests.waiting == []
    assert {id(ticket) for _, ticket in requests.sent} >= {id(ticket) for ticket in waiting}


@given(
    PRESETS,
    st.integers(1, 6),
    st.lists(st.tuples(st.floats(0.1, 3), st.sampled_from(ROUTES[2:])), max_size=10),
    st.integers(0, 100),
)
@settings(max_examples=25)
def test_neither_polls_nor_calls_starve(
    limits: RateBudget, connections: int, calls: list[tuple[float, str]], projects: int
) -> None:
    requests = Requests(limits, connections, check_times=False)
    for number in range(projects):
        requests.scheduler.note_wanted(f"project-{number}", polls=1)
    for seconds, route in [*calls, (0.0, "POST /a")]:
        requests.add(route)
        requests.add("GET /a")
        requests.add("GET /a", is_poll=True)
        requests.give_out_until(requests.now + seconds)
        requests.release_all()
    watched = list(requests.waiting)
    end = requests.now + 660.0 * (len(watched) + 1)
    while requests.now < end and not set(watched).isdisjoint(requests.waiting):
        # Later requests of each kind always wait, too.
        for route, is_poll in (("POST /a", False), ("GET /a", False), ("GET /a", True)):
            if sum(ticket.route == route for ticket in requests.waiting) < 2 + 2 * is_poll:
                requests.add(route, is_poll=is_poll)
        wake_at = requests.give_out()
        requests.now = requests.now + 0.2 if requests.in_flight else wake_at
        requests.release_all()
    assert set(watched).isdisjoint(requests.waiting)
