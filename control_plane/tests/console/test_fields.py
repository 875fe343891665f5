"""Reads numbers and times that were typed into forms."""

import pytest

from neonctl_local.console.fields import (
    drop_empty,
    moment,
    natural_number,
    number,
    whole_number,
)
from neonctl_local.errors import ApiError


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("", None),
        ("  ", None),
        ("2026-01-02T03:04", "2026-01-02T03:04:00Z"),
        (" 2026-01-02 03:04:05 ", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.678", "2026-01-02T03:04:05.678Z"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+01:00", "2026-01-02T03:04:05+01:00"),
        ("tomorrow", "tomorrow"),
    ],
)
def test_times_without_an_offset_are_in_utc(typed: str, expected: str | None) -> None:
    assert moment(typed) == expected


@pytest.mark.parametrize(("typed", "expected"), [("", None), (" 0.25 ", 0.25), ("-1", -1.0)])
def test_numbers_are_read(typed: str, expected: float | None) -> None:
    assert number("The size", typed, "2") == expected


@pytest.mark.parametrize("typed", ["two", "nan", "inf", "1e999", "1,5"])
def test_other_text_is_refused(typed: str) -> None:
    with pytest.raises(ApiError, match="type a number such as 2"):
        number("The size", typed, "2")


def test_whole_numbers_are_read() -> None:
    assert whole_number("The timeout", "300", "60") == 300
    assert whole_number("The timeout", "", "60") is None
    with pytest.raises(ApiError, match=r"The timeout is '1.5': type a whole number such as 60"):
        whole_number("The timeout", "1.5", "60")


def test_fields_without_a_value_are_dropped() -> None:
    assert drop_empty({"a": "", "b": None, "c": 0, "d": False, "e": "x"}) == {
        "c": 0,
        "d": False,
        "e": "x",
    }


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("7", 7),
        ("007", 7),
        ("", None),
        ("-1", None),
        ("٣", None),
        ("1_0", None),
        ("9" * 5000, None),
    ],
)
def test_only_a_text_of_digits_is_a_natural_number(typed: str, expected: int | None) -> None:
    assert natural_number(typed) == expected
