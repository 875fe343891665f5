"""Pictures with an axis of seconds, narrow enough for the text to be readable on a phone.

Their background follows the light or dark mode of the reader, so their text always has contrast.
"""

from collections.abc import Sequence
from html import escape

from tools import svg

WIDTH = 360
MARGIN = 16
LINE = 20
"""The height of a line of text."""
SCALE = 1.4
"""The size of a picture on a wide screen. On a phone, it fills the page."""
_STYLE = """
text { font: 14px system-ui, sans-serif; fill: #202124 } .paper { fill: #ffffff }
@media (prefers-color-scheme: dark) { text { fill: #e8eaed } .paper { fill: #1f2125 } }
"""
GREY, RUNNING, LATE, POLL = "#7a828e", "#3f8fd2", "#c9772b", "#2f9e6e"


class Timeline:
    """A picture whose shapes share one axis of seconds."""

    def __init__(self, title: str, description: str, seconds: float) -> None:
        self._title = title
        self._description = description
        self._scale = (WIDTH - 2 * MARGIN) / seconds
        self._shapes: list[str] = []
        self._bottom = 0.0

    def text(self, x: float, y: float, words: str, *, anchor: str = "start") -> None:
        """Write text with its baseline at ``y``."""
        self._add(y, svg.text(x, y, words, text_anchor=anchor))

    def bar(self, start: float, end: float, y: float, colour: str, height: float = 10) -> None:
        """Draw a period of time."""
        width = (end - start) * self._scale
        self._rectangle(self._x(start), y - height / 2, (width, height), colour)

    def line(self, at: float, top: float, bottom: float, colour: str) -> None:
        """Draw a vertical line at a point in time."""
        x = self._x(at)
        line = svg.element(
            "line", x1=x, x2=x, y1=top, y2=bottom, stroke=colour, stroke_opacity="0.6"
        )
        self._add(bottom, line)

    def dot(self, at: float, y: float) -> None:
        """Draw a poll."""
        self._add(y, svg.dot(self._x(at), y, POLL))

    def axis(self, y: float, marks: Sequence[int]) -> None:
        """Write the seconds below the picture."""
        for at in marks:
            self.text(self._x(at), y, f"{at} s" if at else "0", anchor="middle")

    def legend(self, y: float, *entries: tuple[str, str]) -> None:
        """Explain the colours, in as many lines as that takes."""
        x = float(MARGIN)
        for colour, words in entries:
            width = 16 + 7.2 * len(words)
            if x + width > WIDTH:
                x, y = float(MARGIN), y + LINE
            self._rectangle(x, y - 10, (10, 10), colour)
            self.text(x + 16, y, words)
            x += width + 14

    def svg(self) -> str:
        """Return the picture."""
        height = self._bottom + 12
        parts = [
            svg.element("desc", escape(self._description)),
            svg.element("style", _STYLE),
            svg.element("rect", class_="paper", width=WIDTH, height=height, rx=8),
            *self._shapes,
        ]
        shown = {"width": WIDTH * SCALE, "height": height * SCALE}
        return svg.document(self._title, WIDTH, height, parts, **shown)

    def _x(self, at: float) -> float:
        return MARGIN + at * self._scale

    def _rectangle(self, x: float, y: float, size: tuple[float, float], colour: str) -> None:
        width, height = size
        shape = svg.element("rect", x=x, y=y, width=width, height=height, rx=2, fill=colour)
        self._add(y + height, shape)

    def _add(self, bottom: float, shape: str) -> None:
        self._shapes.append(shape)
        self._bottom = max(self._bottom, bottom)
