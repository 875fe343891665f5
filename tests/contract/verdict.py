"""How a test says what differs: plainly, for whoever changes a Struct or a method."""

from collections.abc import Iterable

import pytest


def agrees(about: object, problems: Iterable[str]) -> None:
    """Fail, telling each problem on a line of its own, if there is any."""
    told = sorted(problems)
    if told:
        pytest.fail("\n  ".join([f"{about}:", *told]), pytrace=False)
