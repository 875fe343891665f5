"""The scenes that the pictures show."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from tools.pictures.simulation import (
    Lifetime,
    Poll,
    Simulation,
    concurrently,
    on_fake_clock,
    one_by_one,
)
from tools.pictures.timeline import GREY, LATE, LINE, MARGIN, POLL, RUNNING, Timeline

HISTORY = [7 + 6 * (7 * n % 20) / 19 for n in range(20)]
"""The durations of earlier operations: about 10 s, up to 30 % more or less, in mixed order."""
DURATION = 12.0
WAITS = {
    "branches.create(…, wait=True)": (0.0, [1.4, 2.6]),
    "operations.wait(created)": (0.8, [2.2, 3.6]),
    "operations.as_completed(fleet)": (1.5, [0.7, 1.9, 3.5, 4.5]),
}
"""The start of each wait, and the durations of its operations."""


def pictures() -> Mapping[str, str]:
    """Return the SVG of each picture by its name."""
    return {"cadence": _cadence().svg(), "poller": _poller().svg()}


def _cadence() -> Timeline:
    timeline = Timeline(
        "When a pending operation is polled",
        "Without history, the delay between polls grows. "
        "With history, polls come when such operations probably finish.",
        seconds=13.4,
    )
    _one_wait(timeline, 26, "Without history", on_fake_clock(lambda: one_by_one([DURATION])))
    with_history = on_fake_clock(lambda: one_by_one([*HISTORY, DURATION]))
    _one_wait(timeline, 118, f"After {len(HISTORY)} operations of its kind", with_history)
    for seconds in HISTORY:
        timeline.line(seconds, 184, 194, GREY)
    timeline.axis(216, range(0, 14, 2))
    timeline.legend(246, (POLL, "poll"), (LATE, "finished, not yet seen"), (GREY, "history"))
    return timeline


def _one_wait(timeline: Timeline, y: float, title: str, simulation: Simulation) -> None:
    """Draw the last operation of a simulation."""
    one = simulation.lifetimes()[-1]
    polls = [poll.at - one.started for poll in simulation.polls() if poll.at > one.started]
    finished, notified = one.finished - one.started, one.notified - one.started
    timeline.text(MARGIN, y, f"{title}:")
    timeline.text(MARGIN, y + LINE, f"{len(polls)} polls, {notified - finished:.1f} s late")
    bar = y + 2 * LINE
    timeline.bar(0, finished, bar, RUNNING)
    timeline.bar(finished, notified, bar, LATE)
    for at in polls:
        timeline.line(at, bar, bar + 14, POLL)
        timeline.dot(at, bar + 14)


def _poller() -> Timeline:
    timeline = Timeline(
        "Three waits on one project share one poller",
        "Each request for the project's list updates the operations of all waits.",
        seconds=6.9,
    )
    simulation = on_fake_clock(lambda: concurrently(dict(WAITS.values())))
    polls = simulation.polls()
    y = 26.0
    for title, ones in zip(WAITS, _by_wait(simulation.lifetimes()), strict=True):
        timeline.text(MARGIN, y, title)
        _lanes(timeline, y + 9, ones, polls)
        y += 11 * len(ones) + 36
    for poll in polls:
        timeline.dot(poll.at, y - 8)
    timeline.axis(y + 16, range(7))
    timeline.text(MARGIN, y + 46, f"{len(polls)} requests.")
    separate = sum(poll.pending for poll in polls)
    timeline.text(MARGIN, y + 46 + LINE, f"One GET per operation would take {separate}.")
    timeline.legend(
        y + 96, (POLL, "request"), (RUNNING, "running"), (LATE, "finished, not yet seen")
    )
    return timeline


def _lanes(timeline: Timeline, y: float, ones: Sequence[Lifetime], polls: Sequence[Poll]) -> None:
    """Draw the operations of a wait and, behind them only, the polls: no line crosses a title."""
    for poll in polls:
        timeline.line(poll.at, y, y + 11 * len(ones), POLL)
    for place, one in enumerate(ones):
        lane = y + 5.5 + 11 * place
        timeline.bar(one.started, one.finished, lane, RUNNING, height=7)
        timeline.bar(one.finished, one.notified, lane, LATE, height=7)


def _by_wait(lifetimes: Sequence[Lifetime]) -> Iterator[list[Lifetime]]:
    """Yield the operations of each wait, which all started together."""
    return (list(ones) for _, ones in groupby(lifetimes, key=lambda one: one.started))
