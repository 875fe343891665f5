"""What pictures have in common: their paper, light or dark as the reader has it, and text."""

from collections.abc import Iterable
from html import escape

WIDTH = 860
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #202124 }
.paper { fill: #ffffff } .ours { stroke: #202124 } .tick { stroke: #dadce0 }
.between { stroke: #bdc1c6; stroke-width: 2 } .small { font-size: 11px; fill: #5f6368 }
@media (prefers-color-scheme: dark) {
  text { fill: #e8eaed } .paper { fill: #1f2125 } .ours { stroke: #e8eaed }
  .tick { stroke: #3c4043 } .between { stroke: #5f6368 } .small { fill: #9aa0a6 }
}
"""


def document(title: str, height: int, parts: Iterable[str]) -> str:
    """A picture of these parts."""
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>',
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def text(x: float, y: float, content: str, *, small: bool = False, anchor: str = "start") -> str:
    """A line of text."""
    kind = ' class="small"' if small else ""
    return f'<text x="{x}" y="{y}"{kind} text-anchor="{anchor}">{escape(content)}</text>'


def dot(x: float, y: float, colour: str) -> str:
    """A mark."""
    return f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>'
