"""The polls without a network whose costs the benchmark of the scale measures."""

from benchmarks.scenarios.scale import pending_bytes, poll_microseconds


async def test_polls_continue_after_the_first_hundred() -> None:
    assert await poll_microseconds(100) > 0


async def test_memory_of_pending_operations_is_measured() -> None:
    assert 100 < await pending_bytes(1000) < 10_000
