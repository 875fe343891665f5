import asyncio

import pytest

from neonctl_async.transport.calls import Deadline

pytestmark = pytest.mark.virtual_time


async def test_time_left_shrinks_to_zero() -> None:
    deadline = Deadline(10.0)
    await asyncio.sleep(4)
    assert deadline.left == pytest.approx(6.0)
    await asyncio.sleep(7)
    assert deadline.left == 0.0
    assert deadline.timeout == 10.0


async def test_no_timeout_leaves_no_limit() -> None:
    deadline = Deadline(None)
    assert deadline.left is None
    assert deadline.at == float("inf")
