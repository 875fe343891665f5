"""What fuzzing found and began with, once more: without the fuzzer, and so in no time."""

import pytest

from tools.fuzz.findings import BROKE
from tools.fuzz.seeds import seeds
from tools.fuzz.targets import TARGETS, run


@pytest.mark.parametrize("once", BROKE)
def test_what_once_broke_a_promise_keeps_it(once: str) -> None:
    assert run(BROKE[once])


def test_what_the_search_begins_with_breaks_nothing() -> None:
    assert all(run(seed) for seed in seeds())


def test_every_target_is_searched() -> None:
    assert {seed[:1] for seed in seeds()} == TARGETS.keys()
