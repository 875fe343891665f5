"""The SVG elements that the project's pictures are made of."""

from collections.abc import Iterable
from html import escape


def element(name: str, content: str = "", /, **attributes: str | float) -> str:
    """Return an element. In names of attributes, ``_`` stands for a hyphen: ``text_anchor``."""
    written = "".join(
        f' {attribute.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for attribute, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, content: str, **attributes: str | float) -> str:
    """Return a line of text whose baseline starts at ``x``, ``y``."""
    return element("text", escape(content), x=x, y=y, **attributes)


def dot(x: float, y: float, colour: str) -> str:
    """Return a filled circle."""
    return element("circle", cx=x, cy=y, r=5, fill=colour)


def document(
    title: str, width: float, height: float, parts: Iterable[str], /, **attributes: str | float
) -> str:
    """Return a whole picture."""
    content = "\n".join(["", element("title", escape(title)), *parts, ""])
    view = f"0 0 {_value(width)} {_value(height)}"
    xmlns = "http://www.w3.org/2000/svg"
    return element("svg", content, xmlns=xmlns, viewBox=view, role="img", **attributes) + "\n"


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else f"{round(value, 1):g}"
