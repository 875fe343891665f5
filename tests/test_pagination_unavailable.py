"""Lists that an API responds to wrongly or incompletely, with pages in memory."""

import itertools
from collections.abc import Sequence

import pytest

from neonctl_async import Paginator
from neonctl_async.pagination import Page
from neonctl_async.types import Pagination
from tests.test_pagination import Pages, page, run_ready_tasks


def page_without(items: str, missing: str, cursor: str | None = None) -> Page[str]:
    return Page(list(items), Pagination(cursor=cursor), list(missing))


async def test_projects_that_the_read_pages_lack_are_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pages = Pages({None: page_without("a", "xy", "1"), "1": page_without("b", "z")})
    paginator = pages.paginator
    assert paginator.unavailable_project_ids == ()
    lacking: list[Sequence[str]] = []
    async for _ in paginator:
        await run_ready_tasks()
        lacking.append(paginator.unavailable_project_ids)
    assert lacking == [("x", "y"), ("x", "y", "z")]
    assert caplog.messages[0] == "a list lacks 2 projects that Neon could not read in time: x, y"


async def test_only_page_may_lack_projects() -> None:
    paginator = Pages({None: page_without("a", "x")}).paginator
    assert await paginator.collect() == ["a"]
    assert paginator.unavailable_project_ids == ("x",)


async def test_project_of_a_later_page_is_available() -> None:
    pages = Pages({None: page_without("a", "xy", "1"), "1": page("xb")})
    paginator = pages.paginator
    assert await paginator.collect() == ["a", "x", "b"]
    assert paginator.unavailable_project_ids == ("y",)


async def test_page_that_only_lacks_projects_does_not_end_the_list() -> None:
    pages = Pages({None: page_without("", "xy", "1"), "1": page("a")})
    assert await pages.paginator.collect() == ["a"]


async def test_each_iteration_counts_the_missing_projects_again() -> None:
    responses: dict[str | None, Page[str] | Exception] = {None: page_without("a", "x")}
    paginator = Pages(responses).paginator
    await paginator.collect()
    responses[None] = page("ax")
    assert await paginator.collect() == ["a", "x"]
    assert paginator.unavailable_project_ids == ()


async def test_long_list_of_missing_projects_is_logged_in_part(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await Pages({None: page_without("", "abcdefghijklm")}).paginator.collect()
    assert caplog.messages[0].endswith(": a, b, c, d, e, f, g, h, i, j, …")


@pytest.mark.parametrize("limit", [None, 20])
async def test_list_that_repeats_its_first_page_with_new_cursors_ends(limit: int | None) -> None:
    cursors = map(str, itertools.count())

    async def fetch(_cursor: str | None) -> Page[str]:
        return page("abc", next(cursors))

    assert await Paginator(fetch, key=lambda item: item).collect(limit) == ["a", "b", "c"]
