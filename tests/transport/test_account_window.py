"""The sliding window. Times are numbers."""

import gc
import math
from collections.abc import Sized

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.transport.account import SlidingWindow

PERIOD = 10.0

steps = st.tuples(st.sampled_from(["take", "release", "cancel"]), st.integers(0, 4))


class Recorded:
    """A window, and the end of each of its requests: None while a request is in flight."""

    def __init__(self, limit: int | None) -> None:
        self.window = SlidingWindow(limit, PERIOD)
        self.ends: list[float | None] = []
        self.now = 0.0

    @property
    def occupied(self) -> int:
        return sum(end is None or end + PERIOD > self.now for end in self.ends)

    def do(self, action: str, seconds: int) -> None:
        """Let time pass, and then take, release or cancel a slot if there is one."""
        self.now += seconds
        in_flight = None in self.ends
        if action == "take" and self.window.free_at(self.now) <= self.now:
            self.window.take()
            self.ends.append(None)
        elif action == "release" and in_flight:
            self.window.release(self.now)
            self.ends[self.ends.index(None)] = self.now
        elif action == "cancel" and in_flight:
            self.window.cancel()
            self.ends.remove(None)


@given(st.integers(1, 5), st.lists(steps, max_size=40))
def test_slots_are_occupied_from_sending_until_a_period_after_the_response(
    limit: int, actions: list[tuple[str, int]]
) -> None:
    recorded = Recorded(limit)
    for action in actions:
        recorded.do(*action)
        assert recorded.occupied <= limit
        assert recorded.window.used(recorded.now) == recorded.occupied
        assert recorded.window.free(recorded.now) == limit - recorded.occupied


@given(st.integers(1, 5), st.lists(steps, max_size=40), st.integers(1, 5))
def test_announced_time_is_the_first_with_enough_free_slots(
    limit: int, actions: list[tuple[str, int]], slots: int
) -> None:
    recorded = Recorded(limit)
    for action in actions:
        recorded.do(*action)
    at = recorded.window.free_at(recorded.now, slots)
    ends = [end + PERIOD for end in recorded.ends if end is not None]
    candidates = sorted({recorded.now, *(end for end in ends if end > recorded.now)})

    def are_free(time: float) -> bool:
        used = recorded.ends.count(None) + sum(end > time for end in ends)
        return limit - used >= slots

    first = next(filter(are_free, candidates), math.inf)
    assert at == (-math.inf if first == recorded.now else first)


@given(st.lists(steps, max_size=40))
def test_window_without_a_limit_counts_requests_and_delays_none(
    actions: list[tuple[str, int]],
) -> None:
    recorded = Recorded(None)
    for action in actions:
        recorded.do(*action)
        assert recorded.window.used(recorded.now) == recorded.occupied
        assert recorded.window.free(recorded.now) == math.inf
        assert recorded.window.free_at(recorded.now, 1000) == -math.inf


def _recorded_ends(window: SlidingWindow) -> Sized:
    """Return the container of the ends that a window remembers."""
    return next(one for one in gc.get_referents(window) if isinstance(one, Sized))


@pytest.mark.parametrize("limit", [3, None])
def test_old_requests_are_forgotten(limit: int | None) -> None:
    window = SlidingWindow(limit, PERIOD)
    for number in range(1000):
        assert window.free_at(4.0 * number) == -math.inf
        window.take()
        window.release(4.0 * number)
        assert len(_recorded_ends(window)) <= 3


@pytest.mark.parametrize(
    ("outcome", "slots", "free_at"),
    [
        ("released", 1, 15.0),
        ("released", 2, math.inf),
        ("cancelled", 1, -math.inf),
        ("cancelled", 2, math.inf),
        ("in flight", 1, math.inf),
    ],
)
def test_free_slots_depend_on_how_a_request_finished(
    outcome: str, slots: int, free_at: float
) -> None:
    window = SlidingWindow(2, PERIOD)
    window.take()
    window.take()
    if outcome == "released":
        window.release(5.0)
    elif outcome == "cancelled":
        window.cancel()
    assert window.free_at(6.0, slots) == free_at
