"""The plot of the waits: lateness and requests of each client, side by side."""

import math
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.harness.results import LATENESS, NEON_SDK, OURS, REQUESTS, Row, Spread
from benchmarks.plots.chart import LogAxis, chart, legend, small_text
from tools import svg

_COLOURS = {OURS: "#d01884", NEON_SDK: "#1a73e8"}
_TITLE = "Waiting for operations: further left is better"
_TOP, _LINE = 96, 26


def wait_rows(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the rows of lateness and requests of each scenario that has both for the SDK too."""
    measured = {(row.scenario, row.measure): row for row in rows if NEON_SDK in row.spreads}
    return [
        (row, measured[row.scenario, REQUESTS])
        for row in rows
        if row.measure == LATENESS and (row.scenario, REQUESTS) in measured
    ]


def draw(rows: Sequence[Row]) -> str:
    """Return the plot as SVG."""
    waits = wait_rows(rows)
    bottom = _TOP + _LINE * len(waits)
    lateness = _axis([row for row, _ in waits], 380, 600)
    requests = _axis([row for _, row in waits], 650, 835)
    parts = [
        svg.text(20, 30, _TITLE),
        *legend(_COLOURS, 54),
        *_panel("seconds after the last operation finished", lateness, bottom),
        *_panel("requests", requests, bottom),
    ]
    for n, (of_lateness, of_requests) in enumerate(waits):
        y = _TOP + _LINE * n + 8
        parts.append(small_text(20, y + 4, of_lateness.scenario))
        parts += _marks(of_lateness.spreads, lateness, y)
        parts += _marks(of_requests.spreads, requests, y)
    return chart(_TITLE, bottom + 36, parts)


def _axis(rows: Sequence[Row], left: int, right: int) -> LogAxis:
    powers = [math.log10(row.spreads[name].median) for row in rows for name in _COLOURS]
    low = math.floor(min(powers, default=0))
    high = max(math.ceil(max(powers, default=1)), low + 1)
    return LogAxis(left=left, right=right, low=10.0**low, high=10.0**high)


def _panel(title: str, axis: LogAxis, bottom: float) -> Iterator[str]:
    yield svg.text(axis.left, 58, title)
    yield from axis.draw({tick: f"{tick:,g}" for tick in axis.ticks()}, _TOP - 12, bottom)


def _marks(spreads: Mapping[str, Spread], axis: LogAxis, y: int) -> Iterator[str]:
    medians = {name: axis.x(spreads[name].median) for name in _COLOURS}
    first, last = medians.values()
    yield svg.element("line", class_="between", x1=first, x2=last, y1=y, y2=y)
    for name, x in medians.items():
        yield svg.dot(x, y, _COLOURS[name])
