"""The pictures on the page about waiting are up to date."""

import re

from tools.pictures.__main__ import FOLDER
from tools.pictures.scenes import pictures


def test_stored_pictures_equal_newly_drawn_ones() -> None:
    stored = {name: (FOLDER / f"{name}.svg").read_text(encoding="utf-8") for name in pictures()}
    assert stored == pictures(), "run `make pictures`, and commit docs/pictures"


def test_history_and_a_shared_poller_save_requests() -> None:
    cadence, poller = pictures().values()
    [without_history, with_history] = re.findall(r": (\d+) looks, (\d+\.\d) s late", cadence)
    assert int(with_history[0]) < int(without_history[0])
    assert float(with_history[1]) < float(without_history[1])
    [(shared, separate)] = re.findall(r"(\d+) requests; .* be (\d+)\.", poller)
    assert 3 * int(shared) < int(separate)
