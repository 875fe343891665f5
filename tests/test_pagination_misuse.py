"""Mistakes in the use of a list, whose errors show how to use it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from neonctl_async import NeonClient
from tests.support.records import API_KEY


@pytest.fixture
def projects() -> Any:
    return NeonClient(API_KEY, base_url="http://127.0.0.1:9").projects.list()


async def await_it(projects: Any) -> None:
    await projects


async def gather_it(projects: Any) -> None:
    await asyncio.gather(projects)


async def make_a_list(projects: Any) -> None:
    list(projects)


async def take_an_item(projects: Any) -> None:
    projects[0]


async def enter_it(projects: Any) -> None:
    async with projects:
        pass


@pytest.mark.parametrize("misuse", [await_it, gather_it, make_a_list, take_an_item, enter_it])
async def test_wrong_use_of_a_list_is_refused_with_both_ways_to_use_it(
    misuse: Callable[[object], Awaitable[None]], projects: object
) -> None:
    with pytest.raises(TypeError, match=r"`async for .* `await .*\.collect\(\)`"):
        await misuse(projects)


def test_list_is_still_true_in_a_condition(projects: object) -> None:
    assert bool(projects) is True


@pytest.mark.parametrize("limit", ["5", 5.0, True])
async def test_limit_that_is_no_int_is_refused(limit: object, projects: Any) -> None:
    with pytest.raises(TypeError, match=r"limit is .*: expected an int, or None for all"):
        await projects.collect(limit)
