"""The pictures in docs/waiting.md and docs/polling.md show what the library does."""

import re

from tools.pictures.__main__ import FOLDER
from tools.pictures.scenes import pictures


def test_pictures_are_up_to_date() -> None:
    stored = {name: (FOLDER / f"{name}.svg").read_text(encoding="utf-8") for name in pictures()}
    assert stored == pictures(), "run `make pictures`, and commit docs/pictures"


def test_history_reduces_polls_and_lateness_and_sharing_reduces_requests() -> None:
    cadence, poller = pictures().values()
    [without, with_history] = re.findall(r": (\d+) polls, (\d+\.\d) s late", cadence)
    assert int(with_history[0]) < int(without[0])
    assert float(with_history[1]) < float(without[1])
    [(shared, separate)] = re.findall(r"(\d+) requests; .* take (\d+)\.", poller)
    assert 3 * int(shared) < int(separate)
