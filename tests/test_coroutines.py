"""Coroutine functions differ from plain functions, also as methods of objects."""

import asyncio

from neonctl_async._coroutines import is_coroutine_function


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
