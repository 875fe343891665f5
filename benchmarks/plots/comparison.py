"""The plot that compares other clients with neonctl-async, on a logarithmic axis."""

from collections.abc import Iterator, Sequence

from benchmarks.harness.results import FLOOR, NEON_API, NEON_SDK, PYDANTIC, Row
from benchmarks.plots.chart import WIDTH, LogAxis, chart, legend, small_text
from benchmarks.plots.waits import wait_rows
from tools import svg

_COLOURS = {FLOOR: "#0f9d58", NEON_API: "#e8710a", PYDANTIC: "#9334e6", NEON_SDK: "#1a73e8"}
_OTHER = "#80868b"
_LEFT, _RIGHT = 390, 30
_TOP, _LINE = 92, 30
_TITLE = "Cost of other clients, as a multiple of neonctl-async"


def draw(rows: Sequence[Row]) -> str:
    """Return the plot of all rows with another client, except the waits, as SVG."""
    waits = {lateness.scenario for lateness, _ in wait_rows(rows)}
    shown = [row for row in rows if _compares(row) and row.scenario not in waits]
    multiples = [1 / ratio.median for row in shown for ratio in row.ratios.values()]
    axis = LogAxis(
        left=_LEFT,
        right=WIDTH - _RIGHT,
        low=min([0.5, *multiples]) / 1.1,
        high=max([2.0, *multiples]) * 1.1,
    )
    height = _TOP + _LINE * len(shown) + 40
    parts = [*_head(shown), *_axis(axis, height - 30)]
    for n, row in enumerate(shown):
        parts += _marks(row, axis, _TOP + _LINE * n)
    return chart(_TITLE, height, parts)


def _compares(row: Row) -> bool:
    has_peer = not _COLOURS.keys().isdisjoint(row.ratios)
    return has_peer and all(ratio.median for ratio in row.ratios.values())


def _head(rows: Sequence[Row]) -> Iterator[str]:
    yield svg.text(20, 30, _TITLE)
    yield small_text(20, 48, "Dots: medians. Right of the line: more than ours. Bars: quartiles.")
    names = {name for row in rows for name in row.ratios}
    colours = {name: colour for name, colour in _COLOURS.items() if name in names}
    yield from legend(colours | {"other": _OTHER}, 68)


def _axis(axis: LogAxis, bottom: float) -> Iterator[str]:
    ticks = axis.ticks((1, 2, 5))
    if len(ticks) >= 12:
        ticks = axis.ticks()
    labels = {tick: f"{tick:g}\N{MULTIPLICATION SIGN}" for tick in ticks}
    return axis.draw(labels, _TOP - 10, bottom, ours=1)


def _marks(row: Row, axis: LogAxis, y: int) -> Iterator[str]:
    yield small_text(20, y + 9, f"{row.scenario}: {row.measure}")
    for name, ratio in row.ratios.items():
        colour = _COLOURS.get(name, _OTHER)
        low, middle, high = (
            axis.x(1 / max(value, 1e-4)) for value in (ratio.high, ratio.median, ratio.low)
        )
        yield svg.element("line", x1=low, x2=high, y1=y + 5, y2=y + 5, stroke=colour)
        yield svg.dot(middle, y + 5, colour)
