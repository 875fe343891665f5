"""A limited number of tasks works on items in order."""

import asyncio

import pytest

from neonctl_async.provisioning.fleet.workers import for_each


async def test_no_more_items_are_in_progress_than_the_limit() -> None:
    running = most = 0
    started: list[int] = []

    async def work(item: int) -> None:
        nonlocal running, most
        started.append(item)
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await for_each(range(10), work, concurrency=3)
    assert (started, most) == (list(range(10)), 3)
    await for_each([], work, concurrency=0)


async def test_first_error_is_raised_and_cancels_the_others() -> None:
    started: list[int] = []
    cancelled: list[int] = []

    async def work(item: int) -> None:
        started.append(item)
        try:
            if item == 1:
                raise RuntimeError("no")
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise

    with pytest.raises(RuntimeError, match=r"^no$"):
        await for_each(range(10), work, concurrency=3)
    # An eager task fails before the next one is created.
    assert started in ([0, 1], [0, 1, 2])
    assert sorted(cancelled) == [item for item in started if item != 1]
