"""Operations, histories and budgets for the tests of plans."""

import math

import msgspec

from neonctl_async.types import OperationAction
from neonctl_async.waiting.timing.forecast import Forecast
from neonctl_async.waiting.tracked import TrackedOperation
from tests.support.records import PROJECT, operation, ref

ACTION = OperationAction.CREATE_BRANCH


class Budget:
    """A rate budget that the test sets. It is neither nearly unused nor short."""

    def __init__(
        self,
        polls_left: float = math.inf,
        polls_wanted: float = 1.0,
        per_minute: float = math.inf,
        *,
        is_contended: bool = True,
    ) -> None:
        self.is_contended = is_contended
        self.per_minute = per_minute
        self.polls_per_second = math.inf
        self.polls_left = polls_left
        self.polls_wanted = polls_wanted


def seen(
    id: str = "a",
    started_at: float = 0.0,
    *,
    action: OperationAction = ACTION,
    project_id: str = PROJECT,
) -> TrackedOperation:
    """Return an operation with a record, started and last polled at ``started_at``."""
    record = operation(id, project_id=project_id)
    entry = TrackedOperation(record.ref, started_at)
    entry.record = msgspec.structs.replace(record, action=action)
    return entry


def unseen(id: str = "a", started_at: float = 0.0) -> TrackedOperation:
    """Return an operation without a record."""
    return TrackedOperation(ref(id), started_at)


def learn(
    forecast: Forecast, *seconds: float, action: OperationAction = ACTION, project_id: str = PROJECT
) -> None:
    """Add operations of these durations to a forecast."""
    for one in seconds:
        observation = forecast.observe(project_id, action, 0.0)
        assert observation is not None
        forecast.note_finished(observation, one)
    forecast.update(0.0)
