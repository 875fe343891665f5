"""Values in error messages, and callbacks that are coroutine functions."""

import asyncio

import pytest

from neonctl_async._internal import MAX_CHARACTERS, is_coroutine_function, shorten


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


class _Later:
    async def __call__(self) -> None: ...


class _Now:
    def __call__(self) -> None: ...


def test_coroutine_functions_and_objects_with_one_are_found() -> None:
    assert is_coroutine_function(asyncio.sleep)
    assert is_coroutine_function(_Later())


def test_plain_functions_and_other_objects_are_not_found() -> None:
    for plain in (print, _Now(), None, _Later):
        assert not is_coroutine_function(plain)
