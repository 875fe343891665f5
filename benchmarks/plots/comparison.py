"""The figures as a picture: each other contender beside ours, on a scale of what it takes."""

import math
from collections.abc import Iterator, Sequence

from benchmarks.harness.results import FLOOR, NEON_API, NEON_SDK, PYDANTIC, Row, Spread
from benchmarks.plots.waits import waits_among
from tools.svg import WIDTH, document, dot, text

_COLOURS = {FLOOR: "#0f9d58", NEON_API: "#e8710a", PYDANTIC: "#9334e6", NEON_SDK: "#1a73e8"}
_OTHER = "#80868b"
_LEFT, _RIGHT = 330, 30
_TOP, _LINE = 92, 30
_TITLE = "What others take, as a multiple of neonctl-async"


class _Scale:
    """Powers of ten, so that twice and half lie equally far from ours."""

    def __init__(self, values: Sequence[float]) -> None:
        self.low = min(0.5, *values) / 1.1
        self.high = max(2.0, *values) * 1.1

    def x(self, value: float) -> float:
        """Where a value lies; one beyond the scale, at its end."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(_LEFT + min(max(share, 0), 1) * (WIDTH - _LEFT - _RIGHT), 1)

    def ticks(self) -> list[float]:
        """The values that are written below."""
        steps = [digit * 10.0**power for power in range(-4, 7) for digit in (1, 2, 5)]
        shown = [step for step in steps if self.low <= step <= self.high]
        return shown if len(shown) < 12 else [step for step in shown if _is_power_of_ten(step)]


def _is_power_of_ten(value: float) -> bool:
    return math.isclose(math.log10(value) % 1, 0, abs_tol=1e-9)


def draw(rows: Sequence[Row]) -> str:
    """The picture of all rows with a peer, but for the waits, which have their own, as SVG."""
    waits = {late.scenario for late, _ in waits_among(rows)}
    shown = [row for row in rows if _compares(row) and row.scenario not in waits]
    times = [1 / ratio.median for row in shown for ratio in row.ratios.values()]
    scale = _Scale([1.0, *times])
    height = _TOP + _LINE * len(shown) + 40
    parts = [*_head(shown), *_axis(scale, height)]
    for n, row in enumerate(shown):
        parts += _marks(row, scale, _TOP + _LINE * n)
    return document(_TITLE, height, parts)


def _compares(row: Row) -> bool:
    has_peer = not _COLOURS.keys().isdisjoint(row.ratios)
    return has_peer and all(ratio.median for ratio in row.ratios.values())


def _head(rows: Sequence[Row]) -> Iterator[str]:
    yield text(20, 30, _TITLE)
    yield text(20, 48, "To the right of the line: more than ours. Lines: quartiles.", small=True)
    x = 20
    found = {name for row in rows for name in row.ratios}
    for name in [*(known for known in _COLOURS if known in found), "other"]:
        yield dot(x + 5, 68, _COLOURS.get(name, _OTHER))
        yield text(x + 15, 72, name, small=True)
        x += 50 + 7 * len(name)


def _axis(scale: _Scale, height: int) -> Iterator[str]:
    bottom = height - 30
    for tick in scale.ticks():
        kind = "ours" if tick == 1 else "tick"
        x = scale.x(tick)
        yield f'<line class="{kind}" x1="{x}" x2="{x}" y1="{_TOP - 10}" y2="{bottom}"/>'
        yield text(x, bottom + 16, f"{tick:g}\N{MULTIPLICATION SIGN}", small=True, anchor="middle")


def _marks(row: Row, scale: _Scale, y: int) -> Iterator[str]:
    yield text(20, y + 9, f"{row.scenario}: {row.measure}", small=True)
    for name, ratio in row.ratios.items():
        colour = _COLOURS.get(name, _OTHER)
        low, middle, high = (scale.x(1 / _at_least(end)) for end in _ends(ratio))
        yield f'<line x1="{low}" x2="{high}" y1="{y + 5}" y2="{y + 5}" stroke="{colour}"/>'
        yield dot(middle, y + 5, colour)


def _ends(ratio: Spread) -> tuple[float, float, float]:
    return ratio.high, ratio.median, ratio.low


def _at_least(ratio: float) -> float:
    return max(ratio, 1e-4)
