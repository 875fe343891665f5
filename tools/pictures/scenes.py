"""What the pictures show."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from tools.pictures.drawing import BUSY, INK, LATE, LOOK, MARGIN, Drawing
from tools.pictures.waits import Look, Platform, Seen, alone, on_fake_clock, together

BEFORE = [7 + 6 * (7 * n % 20) / 19 for n in range(20)]
"""Durations that have been seen: about 10 s, up to 30 % more or less, in no order."""
DURATION = 9.3
WAITS = {
    "branches.create(…, wait=True)": (0.0, [1.4, 2.6]),
    "operations.wait(created)": (0.8, [2.2, 3.6]),
    "operations.as_completed(fleet)": (1.5, [0.7, 1.9, 3.5, 4.5]),
}
"""When they begin, and how long their operations take."""


def pictures() -> Mapping[str, str]:
    """The name and SVG of each."""
    return {"cadence": _cadence().svg(), "poller": _poller().svg()}


def _cadence() -> Drawing:
    drawing = Drawing(
        "When a pending operation is looked at",
        "Without experience looks come at a growing distance; with it, where such operations end.",
        seconds=13.4,
    )
    _one_wait(drawing, 20, "Nothing known yet", on_fake_clock(lambda: alone([DURATION])))
    learned = on_fake_clock(lambda: alone([*BEFORE, DURATION]))
    _one_wait(drawing, 90, f"Having seen {len(BEFORE)} of its kind end", learned)
    for seconds in BEFORE:
        drawing.line(seconds, 136, 146, INK)
    drawing.axis(168, range(0, 14, 2))
    _legend(
        drawing, 196, (LOOK, "a look"), (LATE, "ended, not seen yet"), (INK, "where others ended")
    )
    return drawing


def _one_wait(drawing: Drawing, y: float, title: str, platform: Platform) -> None:
    """The last operation of a platform, alone."""
    one = platform.seen()[-1]
    looks = [look.at - one.began for look in platform.looks() if look.at > one.began]
    ended, told = one.ended - one.began, one.told - one.began
    drawing.text(MARGIN, y, f"{title}: {len(looks)} looks, {told - ended:.1f} s late")
    drawing.bar(0, ended, y + 20, BUSY)
    drawing.bar(ended, told, y + 20, LATE)
    for at in looks:
        drawing.line(at, y + 20, y + 34, LOOK)
        drawing.dot(at, y + 34)


def _poller() -> Drawing:
    drawing = Drawing(
        "Three waits on one project share one poller",
        "Each request for the project's list tells all waits what has become of their operations.",
        seconds=6.9,
    )
    platform = on_fake_clock(lambda: together(dict(WAITS.values())))
    looks = platform.looks()
    y = 20.0
    lanes: list[tuple[float, Seen]] = []
    for title, ones in zip(WAITS, _by_wait(platform.seen()), strict=True):
        drawing.text(MARGIN, y, title)
        lanes += [(y + 14 + 11 * place, one) for place, one in enumerate(ones)]
        y += 11 * len(ones) + 30
    for look in looks:
        drawing.line(look.at, 27, y, LOOK)
    for lane, one in lanes:
        drawing.bar(one.began, one.ended, lane, BUSY, height=7)
        drawing.bar(one.ended, one.told, lane, LATE, height=7)
    for look in looks:
        drawing.dot(look.at, y)
    drawing.axis(y + 24, range(7))
    drawing.text(MARGIN, y + 50, _bill(looks))
    _legend(drawing, y + 74, (LOOK, "a request"), (BUSY, "running"), (LATE, "ended, not seen yet"))
    return drawing


def _by_wait(seen: Sequence[Seen]) -> Iterator[list[Seen]]:
    """The operations of each wait, which all began with it."""
    return (list(ones) for _, ones in groupby(seen, key=lambda one: one.began))


def _bill(looks: Sequence[Look]) -> str:
    each = sum(look.pending for look in looks)
    return f"{len(looks)} requests; a GET for each operation would be {each}."


def _legend(drawing: Drawing, y: float, *entries: tuple[str, str]) -> None:
    x = float(MARGIN)
    for colour, words in entries:
        drawing.square(x, y, colour)
        drawing.text(x + 16, y, words)
        x += 34 + 7.2 * len(words)
