"""Durations, sizes, times and errors, as pages show them."""

import pytest

from neonctl_local.console import formats


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "none"),
        (1, "1 second"),
        (60, "1 minute"),
        (5400, "90 minutes"),
        (21_600, "6 hours"),
        (86_400, "1 day"),
        (86_401, "86401 seconds"),
        (2_592_000, "30 days"),
    ],
)
def test_period_is_shown_in_its_largest_whole_unit(seconds: int, text: str) -> None:
    assert formats.period(seconds) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (999, "999 ms"),
        (1234, "1.2 s"),
        (59_949, "59.9 s"),
        (59_960, "1 min 0 s"),
        (60_000, "1 min 0 s"),
        (125_000, "2 min 5 s"),
        (4_200_000, "1 h 10 min"),
    ],
)
def test_duration_has_at_most_two_units(milliseconds: int, text: str) -> None:
    assert formats.duration(milliseconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1023, "1023 bytes"),
        (1536, "1.5 kB"),
        (31_981_568, "30.5 MB"),
        ((1 << 20) - 1, "1.0 MB"),
        (1 << 30, "1.0 GB"),
    ],
)
def test_size_is_shown_in_units_of_1024(count: int, text: str) -> None:
    assert formats.size(count) == text


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            "invalid request: expires_at: 2020-01-01T00:00:00Z is in the past",
            "expiry: 2020-01-01T00:00:00Z is in the past",
        ),
        (
            "invalid request: decode application/json: invalid: branch.parent_lsn (expected x)",
            "LSN (expected x)",
        ),
        (
            "invalid request: autoscaling_limit_min_cu: 2 is more than autoscaling_limit_max_cu, 1",
            "minimum size: 2 is more than the maximum size, 1",
        ),
        (
            "an expires_at: leave it out, or set the expires_at of branch 'br-x-y-1' to null first",
            "an expiry: leave it out, or remove its expiry first",
        ),
        ("a branch named 'expires_at' exists", "a branch named 'expires_at' exists"),
        ("""the role "it's parent_lsn" exists""", """the role "it's parent_lsn" exists"""),
    ],
)
def test_error_has_the_words_of_the_forms(message: str, text: str) -> None:
    assert formats.explained(message) == text
