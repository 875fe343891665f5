"""The decisions of a wait for a state. Pure: no I/O, no event loop. Times are in seconds."""

from typing import Generic, TypeVar

from neonctl_async.config import PollPolicy
from neonctl_async.waiting.poll_plan import LAST_POLL_MARGIN
from neonctl_async.waiting.states.observed import ObservedState
from neonctl_async.waiting.timing import schedule
from neonctl_async.waiting.timing.pace import CROWD

RecordT = TypeVar("RecordT")


class StatePlan(Generic[RecordT]):
    """Decides when a wait reads the state and when it lists operations.

    A state changes when an operation finishes. The wait therefore lists the operations after the
    first read, after an operation has finished, and after every change of the record. While it
    follows pending operations, it reads the state when one of them finishes. Otherwise it reads the
    state at the delays of the poll policy, which start over after each change, and are longer while
    the rate budget is short.
    """

    def __init__(self, wanted: str, policy: PollPolicy, now: float, deadline: float) -> None:
        self.wanted = wanted
        self.observed: ObservedState[RecordT] | None = None
        """The newest state, None before the first."""
        self.needs_operations: bool = False
        """True if the operations have to be listed."""
        self._policy = policy
        self._deadline = deadline
        self._growing_since = now
        self._read_at = now
        self._read_seconds = 0.0
        self._not_before = now

    @property
    def is_reached(self) -> bool:
        """True if the object is in the wanted state, and is not changing to another one."""
        return self.observed is not None and self.observed.is_steady(self.wanted)

    @property
    def last_read_at(self) -> float:
        """The time of the last read before the deadline."""
        return self._deadline - max(2 * self._read_seconds, LAST_POLL_MARGIN)

    def note_state(self, observed: ObservedState[RecordT], now: float, seconds: float) -> None:
        """Record a state, which a request of ``seconds`` returned at the time ``now``."""
        before = self.observed
        self.observed = observed
        self._read_at = now
        self._read_seconds = seconds
        has_new_state = before is None or not observed.has_same_state(before)
        if has_new_state:
            self._growing_since = now
        # A state that changes often, but is never the wanted one, must not cost more reads.
        if has_new_state or before is None or before.updated_at != observed.updated_at:
            self.needs_operations = True

    def note_failure(self, now: float, pause: float) -> None:
        """Record a request that failed at the time ``now``. The next one comes after a pause."""
        self._read_at = now
        self._not_before = max(self._not_before, now + pause)

    def note_finished_operation(self, now: float) -> None:
        """Record that an operation has finished: the state may have changed."""
        self._growing_since = now
        self.needs_operations = True

    def next_read_at(self, draw: float, *, is_following: bool, stretch: float = 1.0) -> float:
        """Return when to read the state again, unless an operation finishes earlier.

        ``draw`` is a random number from 0 to 1. ``is_following`` is True while operations are
        pending. ``stretch`` is the factor by which polls are delayed.
        """
        waited = max(self._read_at - self._growing_since, 0.0)
        if is_following:
            delay = CROWD * self._policy.maximum
        else:
            delay = schedule.growing_delay(self._policy, waited, draw)
            if not schedule.is_constant(self._policy):
                delay = min(stretch**2 * delay, stretch * self._policy.maximum)
        due = self._read_at + delay
        if self._read_at < self.last_read_at < due:
            due = self.last_read_at
        return max(due, self._not_before)
