"""Values in error messages."""

import pytest

from neonctl_async._shorten import MAX_CHARACTERS, shorten


@pytest.mark.parametrize("value", ["x", "it's", 7, 1.5, None, True, ["a", 1], {"a": 1}, b"x"])
def test_short_value_is_shown_as_its_repr(value: object) -> None:
    assert shorten(value) == repr(value)


@pytest.mark.parametrize("value", ["x" * 20_000, b"x" * 20_000, 10**1000])
def test_long_value_is_shown_with_its_start_and_end(value: object) -> None:
    assert len(shorten(value)) == MAX_CHARACTERS
    assert "..." in shorten(value)
    assert shorten(value)[:5] == repr(value)[:5]


def test_long_collection_is_shown_with_its_first_values() -> None:
    assert len(shorten(["x" * 20_000] * 20_000)) < 10 * MAX_CHARACTERS
