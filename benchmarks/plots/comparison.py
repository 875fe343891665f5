"""The plot that compares other clients with neonctl-async, on a logarithmic axis."""

from collections.abc import Iterator, Sequence

from benchmarks.harness.results import FLOOR, NEON_API, NEON_SDK, PYDANTIC, Row
from benchmarks.plots.chart import (
    BAND,
    LINE,
    MARGIN,
    WIDTH,
    LogAxis,
    chart,
    legend,
    paragraph,
    small_text,
)
from benchmarks.plots.waits import wait_rows
from tools import svg

_COLOURS = {FLOOR: "#0f9d58", NEON_API: "#e8710a", PYDANTIC: "#9334e6", NEON_SDK: "#1a73e8"}
_OTHER = "#80868b"
_TOP = 126
_TITLE = "Cost, as a multiple of neonctl-async"
_CAPTION = (
    "Dots: medians. Bars: quartiles.",
    "Right of the line at 1\N{MULTIPLICATION SIGN}: more than neonctl-async.",
)


def draw(rows: Sequence[Row]) -> str:
    """Return the plot of all rows with another client, except the waits, as SVG."""
    waits = {lateness.scenario for lateness, _ in wait_rows(rows)}
    shown = [row for row in rows if _compares(row) and row.scenario not in waits]
    multiples = [1 / ratio.median for row in shown for ratio in row.ratios.values()]
    axis = LogAxis(
        left=MARGIN + 6,
        right=WIDTH - MARGIN - 6,
        low=min([0.5, *multiples]) / 1.1,
        high=max([2.0, *multiples]) * 1.1,
    )
    ticks = _ticks(axis)
    parts = _head(shown)
    bottom = float(_TOP)
    for row in shown:
        bottom, name = paragraph(bottom, f"{row.scenario}: {row.measure}")
        parts += [*name, *_marks(row, axis, ticks, bottom + 10)]
        bottom += BAND
    labels = {tick: f"{tick:g}\N{MULTIPLICATION SIGN}" for tick in ticks}
    return chart(_TITLE, bottom + 24, [*parts, *axis.labels(labels, bottom + 8)])


def _compares(row: Row) -> bool:
    has_peer = not _COLOURS.keys().isdisjoint(row.ratios)
    return has_peer and all(ratio.median for ratio in row.ratios.values())


def _head(rows: Sequence[Row]) -> list[str]:
    names = {name for row in rows for name in row.ratios}
    colours = {name: colour for name, colour in _COLOURS.items() if name in names}
    captions = [small_text(MARGIN, 50 + LINE * n, line) for n, line in enumerate(_CAPTION)]
    return [svg.text(MARGIN, 28, _TITLE), *captions, *legend(colours | {"other": _OTHER}, 88)]


def _ticks(axis: LogAxis) -> Sequence[float]:
    ticks = axis.ticks((1, 2, 5))
    return axis.ticks() if len(ticks) >= 12 else ticks


def _marks(row: Row, axis: LogAxis, ticks: Sequence[float], y: float) -> Iterator[str]:
    yield from axis.lines(ticks, y - 9, y + 9, ours=1)
    for name, ratio in row.ratios.items():
        colour = _COLOURS.get(name, _OTHER)
        low, middle, high = (
            axis.x(1 / max(value, 1e-4)) for value in (ratio.high, ratio.median, ratio.low)
        )
        yield svg.element("line", x1=low, x2=high, y1=y, y2=y, stroke=colour)
        yield svg.dot(middle, y, colour)
