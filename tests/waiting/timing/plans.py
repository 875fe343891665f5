"""A plan of a project, for its tests."""

import math

from neonctl_async import PollPolicy
from neonctl_async.types import OperationAction
from neonctl_async.waiting.timing.forecast import Forecast
from neonctl_async.waiting.timing.pace import Pace
from neonctl_async.waiting.timing.plan import ProjectPlan
from neonctl_async.waiting.tracked import TrackedOperation
from tests.waiting.timing.conditions import add_queue, learn, plentiful

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
        self.pace = pace or plentiful()
        self.plan = ProjectPlan(policy, self.forecast, self.pace, draw=lambda: 0.5)
        self.entries: list[TrackedOperation] = []
        self.plan.note_waits(len(entries))
        for entry in entries:
            self.add(entry, deadline)

    def add(self, entry: TrackedOperation, deadline: float = math.inf) -> float:
        """Add an operation at its start with a wait for it alone. Return the time of the poll."""
        self.plan.add(entry, add_queue(entry, deadline=deadline), entry.started_at)
        self.entries.append(entry)
        return self.plan.next_poll_at

    def poll(self, now: float, seconds: float = 0.0) -> float:
        """Poll all operations, and return the time of the next poll."""
        self.plan.start_poll(now)
        for entry in self.entries:
            entry.polled_at = now + seconds
        self.plan.finish_poll(seconds)
        return self.replan(now + seconds)

    def replan(self, now: float) -> float:
        self.plan.replan(self.entries, now)
        return self.plan.next_poll_at


def known(*seconds: float) -> Forecast:
    forecast = Forecast()
    learn(forecast, *seconds)
    return forecast
