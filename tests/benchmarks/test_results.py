"""Statistics, ratios and targets of benchmark results."""

import pytest

from benchmarks.harness.results import (
    FLOOR,
    NEON_API,
    NEON_SDK,
    OURS,
    Row,
    Spread,
    Target,
    make_row,
    spread,
)


def test_spread_is_the_median_and_the_quartiles() -> None:
    assert spread([5, 1, 2, 4, 3]) == Spread(median=3, low=2, high=4, count=5)
    assert spread([7]) == Spread(median=7, low=7, high=7, count=1)


def row_of(**runs: list[float]) -> Row:
    names = {"ours": OURS, "floor": FLOOR, "sdk": NEON_SDK, "api": NEON_API}
    return make_row("GET", "alone", "ms", {names[name]: values for name, values in runs.items()})


def test_ratios_compare_runs_of_the_same_round() -> None:
    row = row_of(ours=[1, 20, 3], floor=[1, 10, 1])
    assert row.ratios == {FLOOR: Spread(median=2, low=1.5, high=2.5, count=3)}


def test_client_with_fewer_runs_is_compared_in_the_common_rounds() -> None:
    row = row_of(ours=[2, 4, 100], sdk=[1, 1])
    assert row.ratios[NEON_SDK] == Spread(median=3, low=2.5, high=3.5, count=2)


def test_client_with_a_value_of_zero_has_no_ratio() -> None:
    assert row_of(ours=[0, 0], floor=[0, 1], api=[1, 1]).ratios.keys() == {NEON_API}


@pytest.mark.parametrize(
    ("targets", "met"),
    [
        ([], None),
        ([Target(1.1, relative_to=FLOOR)], True),
        ([Target(1.09, relative_to=FLOOR)], False),
        ([Target(11)], True),
        ([Target(10.9)], False),
        ([Target(1.1, relative_to=FLOOR), Target(10.9)], False),
    ],
)
def test_target_limits_a_ratio_or_the_value(targets: list[Target], met: bool | None) -> None:
    values = {OURS: [11.0, 11.0, 11.0], FLOOR: [10.0, 10.0, 10.0]}
    assert make_row("GET", "alone", "ms", values, targets=targets).met is met
