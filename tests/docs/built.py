"""The site that ``make docs`` has built."""

import re
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path

SITE = Path(__file__).parents[2] / "site"


def page(location: str) -> str:
    """Return the HTML of a page."""
    path = SITE / location / "index.html"
    assert path.exists(), f"{path} is missing: run `make docs`"
    return path.read_text(encoding="utf-8")


def tables(html: str) -> Mapping[str, Sequence[Sequence[str]]]:
    """Return the rows of the last table below each object of the reference, as plain text."""
    found: dict[str, list[list[str]]] = {}
    for part in re.split(r'(?=<h\d id=")', html):
        if (heading := re.match(r'<h\d id="([^"]+)"', part)) is None:
            continue
        for table in re.findall(r"<table>(.*?)</table>", part, re.DOTALL):
            found[heading[1]] = [
                [_text(cell) for cell in re.findall(r"<t[hd]>(.*?)</t[hd]>", row, re.DOTALL)]
                for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
            ]
    return found


def _text(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html)).strip()
