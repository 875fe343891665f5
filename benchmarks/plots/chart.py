"""The parts that the plots share: the frame, log axes, legends."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tools import svg

WIDTH = 380
"""The width of a phone: on a wide screen, the plot is shown larger."""
MARGIN = 16
LINE = 18
"""The height of a line of small text."""
BAND = 26
"""The height of the marks of a row, which are below its name."""
_CHARACTERS = 48
"""The longest line of small text, also in a wide font."""
_SCALE = 1.25
_STYLE = """
text { font: 14px system-ui, sans-serif; fill: #202124 }
.paper { fill: #ffffff } .ours { stroke: #202124 } .tick { stroke: #dadce0 }
.between { stroke: #bdc1c6; stroke-width: 2 } .small { font-size: 12px; fill: #5f6368 }
@media (prefers-color-scheme: dark) {
  text { fill: #e8eaed } .paper { fill: #1f2125 } .ours { stroke: #e8eaed }
  .tick { stroke: #3c4043 } .between { stroke: #5f6368 } .small { fill: #9aa0a6 }
}
"""


class LogAxis(msgspec.Struct, frozen=True, kw_only=True):
    """A logarithmic axis from ``low`` at ``left`` to ``high`` at ``right``."""

    left: float
    right: float
    low: float
    high: float

    def x(self, value: float) -> float:
        """Return the position of a value. A value beyond the axis is put at its end."""
        value = min(max(value, self.low), self.high)
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.left + share * (self.right - self.left)

    def ticks(self, digits: Iterable[int] = (1,)) -> list[float]:
        """Return the multiples of powers of ten on the axis, for each of these digits."""
        steps = sorted(digit * 10.0**power for power in range(-4, 7) for digit in digits)
        return [step for step in steps if self.low <= step <= self.high]

    def lines(
        self, ticks: Iterable[float], top: float, bottom: float, ours: float | None = None
    ) -> Iterator[str]:
        """Yield a vertical line for each tick. The one at ``ours`` stands out."""
        for value in ticks:
            x = self.x(value)
            kind = "ours" if value == ours else "tick"
            yield svg.element("line", class_=kind, x1=x, x2=x, y1=top, y2=bottom)

    def labels(self, labels: Mapping[float, str], y: float) -> Iterator[str]:
        """Yield the label of each tick."""
        for value, label in labels.items():
            yield small_text(self.x(value), y, label, text_anchor="middle")


def small_text(x: float, y: float, content: str, **attributes: str) -> str:
    """Return a line of small text."""
    return svg.text(x, y, content, class_="small", **attributes)


def paragraph(y: float, content: str) -> tuple[float, list[str]]:
    """Return small text from ``y`` on, in as many lines as it takes, and the end of it."""
    lines = textwrap.wrap(content, _CHARACTERS)
    parts = [small_text(MARGIN, y + 12 + LINE * n, line) for n, line in enumerate(lines)]
    return y + LINE * len(lines), parts


def legend(colours: Mapping[str, str], y: float) -> list[str]:
    """Return a dot and a name for each colour, in as many lines as that takes."""
    parts: list[str] = []
    x = MARGIN
    for name, colour in colours.items():
        width = 15 + 7 * len(name)
        if x + width > WIDTH:
            x, y = MARGIN, y + LINE
        parts += [svg.dot(x + 5, y, colour), small_text(x + 15, y + 4, name)]
        x += width + 14
    return parts


def chart(title: str, height: float, parts: Iterable[str]) -> str:
    """Return a plot in a frame that follows the reader's light or dark mode."""
    frame = [
        svg.element("style", _STYLE),
        svg.element("rect", class_="paper", width=WIDTH, height=height, rx=8),
    ]
    shown = {"width": WIDTH * _SCALE, "height": height * _SCALE}
    return svg.document(title, WIDTH, height, [*frame, *parts], **shown)
