"""The pictures of the page on waiting show what the library does."""

import re

from tools.pictures.__main__ import FOLDER
from tools.pictures.scenes import pictures


def test_the_pictures_show_what_the_library_does_now() -> None:
    there = {name: (FOLDER / f"{name}.svg").read_text(encoding="utf-8") for name in pictures()}
    assert there == pictures(), "run `make pictures`, and commit docs/pictures"


def test_learning_makes_looks_fewer_and_sooner_and_sharing_saves_requests() -> None:
    cadence, poller = pictures().values()
    [blind, learned] = re.findall(r": (\d+) looks, (\d+\.\d) s late", cadence)
    assert int(learned[0]) < int(blind[0])
    assert float(learned[1]) < float(blind[1])
    [(shared, each)] = re.findall(r"(\d+) requests; .* be (\d+)\.", poller)
    assert 3 * int(shared) < int(each)
