"""The pictures in docs show what the library does, and can be read."""

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest

from tools.pictures.__main__ import FOLDER
from tools.pictures.scenes import pictures
from tools.screens import SCREENS, WIDE

DRAWN = ("benchmarks", "cadence", "poller", "waits")
TERMINALS = (*SCREENS, *(f"{name}-{WIDE}" for name in SCREENS if SCREENS[name].is_list))
SVG = "{http://www.w3.org/2000/svg}"
PHONE = 343
"""The width of the text of a page on a phone, in pixels."""


class Box(NamedTuple):
    """The space that a text takes in a wide font."""

    words: str
    left: float
    right: float
    top: float
    bottom: float


def read(name: str) -> ET.Element:
    return ET.parse(FOLDER / f"{name}.svg").getroot()


def size(picture: ET.Element) -> tuple[float, float]:
    """Return the width and the height of a picture, in its own units."""
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    return width, height


def boxes(picture: ET.Element) -> Iterator[Box]:
    """Yield the space of each text of a picture."""
    for text in picture.iter(f"{SVG}text"):
        words = text.text or ""
        height = 12 if text.get("class") == "small" else 14
        width = 0.52 * height * len(words)
        left = float(text.attrib["x"]) - (width / 2 if text.get("text-anchor") == "middle" else 0)
        baseline = float(text.attrib["y"])
        yield Box(words, left, left + width, baseline - 0.7 * height, baseline + 0.2 * height)


def test_pictures_are_up_to_date() -> None:
    stored = {name: (FOLDER / f"{name}.svg").read_text(encoding="utf-8") for name in pictures()}
    assert stored == pictures(), "run `make pictures`, and commit docs/pictures"


def test_history_reduces_polls_and_lateness_and_sharing_reduces_requests() -> None:
    cadence, poller = pictures().values()
    [without, with_history] = re.findall(r">(\d+) polls, (\d+\.\d) s late", cadence)
    assert int(with_history[0]) < int(without[0])
    assert float(with_history[1]) < float(without[1])
    [shared] = re.findall(r">(\d+) requests\.", poller)
    [separate] = re.findall(r"would take (\d+)\.", poller)
    assert 3 * int(shared) < int(separate)


@pytest.mark.parametrize("name", DRAWN)
def test_no_line_crosses_a_text(name: str) -> None:
    picture = read(name)
    lines = [
        [float(line.attrib[name]) for name in ("x1", "x2", "y1", "y2")]
        for line in picture.iter(f"{SVG}line")
    ]
    crossed = [
        box.words
        for box in boxes(picture)
        for left, right, top, bottom in lines
        if left < box.right and right > box.left and top < box.bottom and bottom > box.top
    ]
    assert lines
    assert crossed == []


@pytest.mark.parametrize("name", DRAWN)
def test_texts_fit_the_picture(name: str) -> None:
    picture = read(name)
    width, height = size(picture)
    outside = [box for box in boxes(picture) if box.right > width or box.bottom > height]
    assert outside == []


@pytest.mark.parametrize("name", DRAWN)
def test_text_is_readable_on_a_phone(name: str) -> None:
    width, _ = size(read(name))
    assert 12 * PHONE / width > 10


@pytest.mark.parametrize("name", TERMINALS)
def test_terminal_shows_its_first_and_last_line(name: str) -> None:
    picture = read(name)
    texts = [text for text in picture.iter(f"{SVG}text") if text.get("clip-path")]
    clips = [
        rect.attrib for clip in picture.iter(f"{SVG}clipPath") for rect in clip.iter(f"{SVG}rect")
    ]
    visible = max(float(clip.get("y", "0")) + float(clip["height"]) for clip in clips)
    last = max(float(text.attrib["y"]) for text in texts if (text.text or "").strip())
    assert last + 6 < visible
    first = min(texts, key=lambda text: float(text.attrib["y"]))
    assert (first.text or "").startswith("$")
