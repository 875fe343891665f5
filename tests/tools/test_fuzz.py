"""The fuzz targets on all stored inputs, without the fuzzer."""

import pytest

from tools.fuzz.findings import VIOLATIONS
from tools.fuzz.seeds import seeds
from tools.fuzz.targets import TARGETS, run


@pytest.mark.parametrize("name", VIOLATIONS)
def test_fixed_violation_stays_fixed(name: str) -> None:
    assert run(VIOLATIONS[name])


def test_seeds_violate_nothing() -> None:
    assert all(run(seed) for seed in seeds())


def test_every_target_has_a_seed() -> None:
    assert {seed[:1] for seed in seeds()} == TARGETS.keys()
