"""A plan of a project, for its tests."""

import math

from neonctl_async import PollPolicy
from neonctl_async.types import OperationAction
from neonctl_async.waiting.poll_plan import PollPlan
from neonctl_async.waiting.timing.forecast import Forecast
from neonctl_async.waiting.timing.pace import Pace
from neonctl_async.waiting.tracked import OperationWait, TrackedOperation
from tests.waiting.timing.conditions import Budget, learn

POLICY = PollPolicy(initial=1.0, growth=2.0, maximum=10.0, jitter=0.0)
OTHER = OperationAction.START_COMPUTE


class Plan:
    """A plan whose polls take no time, and the operations that it is for."""

    def __init__(
        self,
        *entries: TrackedOperation,
        deadline: float = math.inf,
        policy: PollPolicy = POLICY,
        pace: Pace | None = None,
        forecast: Forecast | None = None,
    ) -> None:
        self.forecast = forecast or Forecast()
        self.pace = pace or Pace(Budget())
        self.plan = PollPlan(policy, self.forecast, self.pace, draw=lambda: 0.5)
        self.entries: list[TrackedOperation] = []
        for entry in entries:
            self.add(entry, deadline=deadline)

    def add(
        self,
        *entries: TrackedOperation,
        deadline: float = math.inf,
        now: float | None = None,
        reports_each: bool = False,
    ) -> OperationWait:
        """Add a wait for operations, at their start unless ``now`` is another time."""
        wait = OperationWait([], timeout=deadline)
        wait.start(0.0, reports_each=reports_each)
        for entry in entries:
            entry.waits[wait] = None
            self.plan.add(entry, wait, entry.started_at if now is None else now)
            if entry not in self.entries:
                self.entries.append(entry)
        return wait

    def next_poll(self, now: float = 0.0) -> float:
        """Return when the next poll starts, as time passes."""
        while (at := self.plan.next_poll_at(now)) > now:
            if at == math.inf:
                return at
            now = at
        return now

    def poll(self, now: float, seconds: float = 0.0) -> float:
        """Poll all operations, and return the time of the next poll."""
        self.read(now, seconds)
        return self.next_poll(now + seconds)

    def read(self, now: float, seconds: float = 0.0) -> None:
        """Poll all operations."""
        self.plan.start_poll(self.entries, now)
        for entry in self.entries:
            entry.was_polled = True
            entry.polled_at = now + seconds
        self.plan.release(self.entries)
        self.plan.note_response(seconds, now + seconds)

    def polls_until(self, end: float) -> list[float]:
        """Return the times of all polls up to a time."""
        times: list[float] = []
        at = self.next_poll()
        while at <= end:
            times.append(at)
            at = self.poll(at)
        return times


def known(*seconds: float) -> Forecast:
    forecast = Forecast()
    learn(forecast, *seconds)
    return forecast
