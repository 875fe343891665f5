"""A plan with its operations, for the tests of plans."""

import math

from neonctl_async import PollPolicy
from neonctl_async.waiting.forecast import Forecast
from neonctl_async.waiting.pace import Pace
from neonctl_async.waiting.plan import ProjectPlan
from neonctl_async.waiting.tracked import TrackedOperation
from tests.waiting.conditions import add_queue, learn, plentiful

POLICY = PollPolicy(initial=1.0, growth=2.0, maximum=10.0, jitter=0.0)


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
