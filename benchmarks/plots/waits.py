"""The waits as a picture: how late each contender returned and what it asked, side by side."""

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from benchmarks.harness.results import NEON_SDK, OURS, Row, Spread
from tools.svg import document, dot, text

_COLOURS = {OURS: "#d01884", NEON_SDK: "#1a73e8"}
_TOP, _LINE = 96, 26
Wait = tuple[Row, Row]
"""The rows of a scenario: how late, and at what cost."""


class _Panel(msgspec.Struct, frozen=True, kw_only=True):
    """A logarithmic axis, between two powers of ten."""

    title: str
    left: int
    right: int
    low: float
    high: float

    def x(self, value: float) -> float:
        """Where a value lies."""
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return round(self.left + share * (self.right - self.left), 1)

    def ticks(self) -> list[float]:
        """The powers of ten."""
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


def waits_among(rows: Sequence[Row]) -> list[Wait]:
    """The scenarios that have both, by ours and by the SDK."""
    measured = {(row.scenario, row.measure): row for row in rows if NEON_SDK in row.spreads}
    return [
        (row, measured[row.scenario, "cost"])
        for row in rows
        if row.measure == "late" and (row.scenario, "cost") in measured
    ]


def draw_waits(rows: Sequence[Row]) -> str:
    """The picture, as SVG."""
    waits = waits_among(rows)
    bottom = _TOP + _LINE * len(waits)
    late = _panel("seconds past the last completion", [row for row, _ in waits], 380, 600)
    cost = _panel("requests", [row for _, row in waits], 650, 835)
    parts = [
        text(20, 30, "Waiting for operations: to the left is better"),
        *_legend(),
        *_axis(late, bottom),
        *_axis(cost, bottom),
    ]
    for n, (of_late, of_cost) in enumerate(waits):
        y = _TOP + _LINE * n + 8
        parts.append(text(20, y + 4, of_late.scenario, small=True))
        parts += [*_marks(of_late.spreads, late, y), *_marks(of_cost.spreads, cost, y)]
    return document("Waiting for operations", bottom + 36, parts)


def _panel(title: str, rows: Sequence[Row], left: int, right: int) -> _Panel:
    powers = [math.log10(row.spreads[name].median) for row in rows for name in _COLOURS]
    low = math.floor(min(powers, default=0))
    high = max(math.ceil(max(powers, default=1)), low + 1)
    return _Panel(title=title, left=left, right=right, low=10.0**low, high=10.0**high)


def _legend() -> Iterator[str]:
    x = 20
    for name, colour in _COLOURS.items():
        yield dot(x + 5, 54, colour)
        yield text(x + 15, 58, name, small=True)
        x += 50 + 7 * len(name)


def _axis(panel: _Panel, bottom: int) -> Iterator[str]:
    yield text(panel.left, 58, panel.title)
    for tick in panel.ticks():
        x = panel.x(tick)
        yield f'<line class="tick" x1="{x}" x2="{x}" y1="{_TOP - 12}" y2="{bottom}"/>'
        yield text(x, bottom + 18, f"{tick:,g}", small=True, anchor="middle")


def _marks(spreads: Mapping[str, Spread], panel: _Panel, y: int) -> Iterator[str]:
    first, last = (panel.x(spreads[name].median) for name in _COLOURS)
    yield f'<line class="between" x1="{first}" x2="{last}" y1="{y}" y2="{y}"/>'
    for name, colour in _COLOURS.items():
        yield dot(panel.x(spreads[name].median), y, colour)
