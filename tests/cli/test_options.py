from datetime import timedelta

import pytest
import typer

from neonctl_async.cli.options import duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("45s", timedelta(seconds=45)),
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("1.5h", timedelta(minutes=90)),
        ("7d", timedelta(days=7)),
        (" 2w ", timedelta(days=14)),
    ],
)
def test_duration_is_a_number_with_a_unit(text: str, expected: timedelta) -> None:
    assert duration(text) == expected


@pytest.mark.parametrize(("text", "seconds"), [("60", 60), ("1.5", 1.5), ("1h", 3600)])
def test_number_without_a_unit_has_the_default_unit(text: str, seconds: float) -> None:
    assert duration(text, default_unit="s") == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "7", "d", "0d", "0.0h", "-1d", "1d2h", "7 d", "7D", "1e3s", "٣d", "nand"]
)
def test_other_text_is_a_usage_error(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a duration: expected a number above 0"):
        duration(text)


@pytest.mark.parametrize("text", ["9999999999d", f"{'9' * 400}w"])
def test_too_long_duration_is_a_usage_error(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is too long"):
        duration(text)
