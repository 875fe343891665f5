"""SVG by the line: shapes over an axis of seconds, on no ground of their own.

The colours stand out on white and on black alike, for a page may be either, whatever the reader's
system prefers.
"""

from collections.abc import Sequence
from html import escape

WIDTH = 480
MARGIN = 16
INK, BUSY, LATE, LOOK = "#7a828e", "#3f8fd2", "#c9772b", "#2f9e6e"


class Drawing:
    """Shapes, which share one axis of seconds across the picture."""

    def __init__(self, title: str, description: str, seconds: float) -> None:
        self._about = (title, description)
        self._scale = (WIDTH - 2 * MARGIN) / seconds
        self._shapes: list[str] = []
        self._bottom = 0.0

    def text(self, x: float, y: float, words: str, *, anchor: str = "start") -> None:
        """Words, whose foot is at ``y``."""
        self._add(y, f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>')

    def bar(self, began: float, ended: float, y: float, colour: str, height: float = 10) -> None:
        """A time that something took."""
        x, width = self._x(began), (ended - began) * self._scale
        self._add(
            y + height,
            f'<rect x="{x:.1f}" y="{y - height / 2:g}" width="{width:.1f}" height="{height:g}" '
            f'rx="2" fill="{colour}"/>',
        )

    def line(self, at: float, top: float, bottom: float, colour: str) -> None:
        """A moment."""
        x = self._x(at)
        self._add(
            bottom,
            f'<path d="M{x:.1f} {top:g}V{bottom:g}" stroke="{colour}" stroke-opacity="0.6"/>',
        )

    def dot(self, at: float, y: float) -> None:
        """A request, sent at that time."""
        self._add(y, f'<circle cx="{self._x(at):.1f}" cy="{y:g}" r="5" fill="{LOOK}"/>')

    def square(self, x: float, y: float, colour: str) -> None:
        """A colour, as words beside it tell what it means."""
        self._add(y, f'<rect x="{x:g}" y="{y - 10:g}" width="10" height="10" fill="{colour}"/>')

    def axis(self, y: float, marks: Sequence[int]) -> None:
        """Which time is where."""
        for at in marks:
            self.text(self._x(at), y, f"{at} s" if at else "0", anchor="middle")

    def svg(self) -> str:
        """The picture."""
        title, description = map(escape, self._about)
        height = self._bottom + 8
        size = f'width="{WIDTH * 1.4:g}" height="{height * 1.4:g}" viewBox="0 0 {WIDTH} {height:g}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>',
            f"<title>{title}</title>",
            f"<desc>{description}</desc>",
            f'<g font-family="system-ui, sans-serif" font-size="14" fill="{INK}">',
            *self._shapes,
            "</g>",
            "</svg>",
        ]
        return "\n".join(lines) + "\n"

    def _x(self, at: float) -> float:
        return MARGIN + at * self._scale

    def _add(self, bottom: float, shape: str) -> None:
        self._shapes.append(shape)
        self._bottom = max(self._bottom, bottom)
