"""The figures as a picture: each other contender beside ours, on a scale of what it takes."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from benchmarks.figures import FLOOR, NEON_API, NEON_SDK, PYDANTIC, Row, Spread

_COLOURS = {FLOOR: "#0f9d58", NEON_API: "#e8710a", PYDANTIC: "#9334e6", NEON_SDK: "#1a73e8"}
_OTHER = "#80868b"
_WIDTH, _LEFT, _RIGHT = 860, 330, 30
_TOP, _LINE = 92, 30
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #202124 }
.paper { fill: #ffffff } .ours { stroke: #202124 } .tick { stroke: #dadce0 }
.small { font-size: 11px; fill: #5f6368 }
@media (prefers-color-scheme: dark) {
  text { fill: #e8eaed } .paper { fill: #1f2125 } .ours { stroke: #e8eaed }
  .tick { stroke: #3c4043 } .small { fill: #9aa0a6 }
}
"""


class _Scale:
    """Powers of ten, so that twice and half lie equally far from ours."""

    def __init__(self, values: Sequence[float]) -> None:
        self.low = min(0.5, *values) / 1.1
        self.high = max(2.0, *values) * 1.1

    def x(self, value: float) -> float:
        """Where a value lies."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def ticks(self) -> list[float]:
        """The values that are written below."""
        steps = [digit * 10.0**power for power in range(-4, 7) for digit in (1, 2, 5)]
        shown = [step for step in steps if self.low <= step <= self.high]
        return shown if len(shown) < 12 else [step for step in shown if _is_power_of_ten(step)]


def _is_power_of_ten(value: float) -> bool:
    return math.isclose(math.log10(value) % 1, 0, abs_tol=1e-9)


def draw(rows: Sequence[Row]) -> str:
    """The picture of all rows that compare, as SVG."""
    shown = [row for row in rows if row.ratios]
    times = [1 / ratio.median for row in shown for ratio in row.ratios.values()]
    scale = _Scale([1.0, *times])
    height = _TOP + _LINE * len(shown) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>What others take, as a multiple of neonctl-async</title><style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}" rx="8"/>',
        *_head(shown),
        *_axis(scale, height),
    ]
    for n, row in enumerate(shown):
        parts += _marks(row, scale, _TOP + _LINE * n)
    return "\n".join([*parts, "</svg>", ""])


def _head(rows: Sequence[Row]) -> Iterator[str]:
    yield _text(20, 30, "What others take, as a multiple of neonctl-async")
    yield _text(20, 48, "To the right of the line: more than ours. Lines: quartiles.", small=True)
    x = 20
    found = {name for row in rows for name in row.ratios}
    for name in [*(known for known in _COLOURS if known in found), "other"]:
        yield f'<circle cx="{x + 5}" cy="68" r="5" fill="{_COLOURS.get(name, _OTHER)}"/>'
        yield _text(x + 15, 72, name, small=True)
        x += 50 + 7 * len(name)


def _axis(scale: _Scale, height: int) -> Iterator[str]:
    bottom = height - 30
    for tick in scale.ticks():
        kind = "ours" if tick == 1 else "tick"
        x = scale.x(tick)
        yield f'<line class="{kind}" x1="{x}" x2="{x}" y1="{_TOP - 10}" y2="{bottom}"/>'
        yield _text(x, bottom + 16, f"{tick:g}\N{MULTIPLICATION SIGN}", small=True, anchor="middle")


def _marks(row: Row, scale: _Scale, y: int) -> Iterator[str]:
    yield _text(20, y + 9, f"{row.scenario}: {row.measure}", small=True)
    for name, ratio in row.ratios.items():
        colour = _COLOURS.get(name, _OTHER)
        low, middle, high = (scale.x(1 / _at_least(end)) for end in _ends(ratio))
        yield f'<line x1="{low}" x2="{high}" y1="{y + 5}" y2="{y + 5}" stroke="{colour}"/>'
        yield f'<circle cx="{middle}" cy="{y + 5}" r="5" fill="{colour}"/>'


def _ends(ratio: Spread) -> tuple[float, float, float]:
    return ratio.high, ratio.median, ratio.low


def _at_least(ratio: float) -> float:
    return max(ratio, 1e-4)


def _text(x: float, y: float, text: str, *, small: bool = False, anchor: str = "start") -> str:
    kind = ' class="small"' if small else ""
    return f'<text x="{x}" y="{y}"{kind} text-anchor="{anchor}">{escape(text)}</text>'
