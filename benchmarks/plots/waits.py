"""The plot of the waits: lateness and requests of each client, side by side."""

import math
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.harness.results import LATENESS, NEON_SDK, OURS, REQUESTS, Row, Spread
from benchmarks.plots.chart import BAND, MARGIN, WIDTH, LogAxis, chart, legend, paragraph
from tools import svg

_COLOURS = {OURS: "#d01884", NEON_SDK: "#1a73e8"}
_TITLE = "Waiting for operations: further left is better"
_TOP = 100
_GAP = 40


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
    middle = WIDTH / 2
    lateness = _axis([row for row, _ in waits], MARGIN + 6, middle - _GAP / 2)
    requests = _axis([row for _, row in waits], middle + _GAP / 2, WIDTH - MARGIN - 6)
    parts = [
        svg.text(MARGIN, 28, _TITLE),
        *legend(_COLOURS, 50),
        svg.text(lateness.left, 84, "seconds late"),
        svg.text(requests.left, 84, "requests"),
    ]
    bottom = float(_TOP)
    for of_lateness, of_requests in waits:
        bottom, name = paragraph(bottom, of_lateness.scenario)
        parts += name
        parts += _marks(of_lateness.spreads, lateness, bottom + 10)
        parts += _marks(of_requests.spreads, requests, bottom + 10)
        bottom += BAND
    parts += [*_labels(lateness, bottom + 8), *_labels(requests, bottom + 8)]
    return chart(_TITLE, bottom + 24, parts)


def _axis(rows: Sequence[Row], left: float, right: float) -> LogAxis:
    powers = [math.log10(row.spreads[name].median) for row in rows for name in _COLOURS]
    low = math.floor(min(powers, default=0))
    high = max(math.ceil(max(powers, default=1)), low + 1)
    return LogAxis(left=left, right=right, low=10.0**low, high=10.0**high)


def _labels(axis: LogAxis, y: float) -> Iterator[str]:
    ticks = {tick: f"{tick:g}" if tick < 1000 else f"{tick / 1000:g}k" for tick in axis.ticks()}
    return axis.labels(ticks, y)


def _marks(spreads: Mapping[str, Spread], axis: LogAxis, y: float) -> Iterator[str]:
    yield from axis.lines(axis.ticks(), y - 9, y + 9)
    medians = {name: axis.x(spreads[name].median) for name in _COLOURS}
    first, last = medians.values()
    yield svg.element("line", class_="between", x1=first, x2=last, y1=y, y2=y)
    for name, x in medians.items():
        yield svg.dot(x, y, _COLOURS[name])
