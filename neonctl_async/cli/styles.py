"""Styled text, and its width on a terminal. Pure: no I/O."""

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, Self

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
ELLIPSIS: Final = "…"


class Text:
    """Text whose parts have styles. A style is a string of words, such as ``bold red``."""

    def __init__(self, text: str = "", style: str = "") -> None:
        self.parts: list[tuple[str, str]] = [(text, style)] if text else []

    def append(self, text: "str | Text", style: str = "") -> Self:
        """Append text, and return this object."""
        if isinstance(text, Text):
            self.parts += text.parts
        elif text:
            self.parts.append((text, style))
        return self

    def join(self, texts: Iterable["Text"]) -> "Text":
        """Join the texts, with this text between them."""
        joined = Text()
        for number, text in enumerate(texts):
            if number:
                joined.append(self)
            joined.append(text)
        return joined

    @property
    def plain(self) -> str:
        """The text without its styles."""
        return "".join(text for text, _ in self.parts)

    @property
    def width(self) -> int:
        """The number of columns that the text takes up on a terminal."""
        return cell_width(self.plain)

    def cut(self, width: int) -> "Text":
        """Return the text in at most ``width`` columns. If it is cut, it ends with an ellipsis."""
        if self.width <= width:
            return self
        left = width - 1
        shown = Text()
        for text, style in self.parts:
            fitting = "".join(_fitting(text, left))
            shown.append(fitting, style)
            left -= cell_width(fitting)
            if fitting != text:
                break
        return shown.append(ELLIPSIS)

    def ansi(self) -> str:
        """Return the text with the ANSI escape sequences of its styles."""
        return "".join(map(_ansi, self.parts))


def cell_width(text: str) -> int:
    """Return the number of columns that a string takes up on a terminal."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fitting(text: str, width: int) -> Iterator[str]:
    """Yield as many of the first characters as fit."""
    for character in text:
        width -= _width(character)
        if width < 0:
            return
        yield character


def _ansi(part: tuple[str, str]) -> str:
    text, style = part
    codes = ";".join(_CODES[word] for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m" if codes else text
