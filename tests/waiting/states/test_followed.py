"""The operations that a wait for a state follows, on the shared pollers."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from neonctl_async import (
    ClientClosedError,
    NotFoundError,
    PollPolicy,
    RateBudget,
    RetryPolicy,
    Secret,
    Timeout,
)
from neonctl_async.config import Config
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.session import Session
from neonctl_async.waiting.registry import PollerRegistry
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.states.followed import FollowedOperations
from neonctl_async.waiting.waiter import Waiter
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import operation

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def pollers(fake_neon: FakeNeon) -> AsyncIterator[PollerRegistry]:
    session = Session(
        Config(
            api_key=Secret("key"),
            base_url=fake_neon.base_url,
            timeout=Timeout(),
            retry=RetryPolicy(),
            budget=RateBudget.unlimited(),
            polling=PollPolicy(),
            hooks=(),
            max_connections=10,
            max_response_bytes=1 << 20,
            ca_file=None,
            trust_env=False,
        ),
        HookDispatcher(()),
    )
    waiter = Waiter(OperationSource(session), PollPolicy(), HookDispatcher(()))
    yield waiter.pollers
    await waiter.aclose()
    await session.aclose()


@pytest.fixture
async def followed(pollers: PollerRegistry) -> AsyncIterator[FollowedOperations]:
    followed = FollowedOperations(pollers)
    yield followed
    await followed.release()


async def test_operations_that_finish_together_are_recorded_together(
    fake_neon: FakeNeon, followed: FollowedOperations
) -> None:
    for id in ("a", "b"):
        fake_neon.start(id, ends=3, status="skipped" if id == "b" else "finished")
    fake_neon.start("c", ends=30, status="failed")
    followed.follow([operation(id) for id in ("a", "b", "c")], deadline=300)
    assert await followed.wait_until_one_finishes()
    assert now() < 6
    assert {each.id for each in followed.settled.values()} == {"a", "b"}
    assert [each.id for each in followed.pending] == ["c"]
    assert followed.unsuccessful == 0
    assert await followed.wait_until_one_finishes()
    assert followed.unsuccessful == 1
    assert not followed.pending


async def test_operation_is_followed_once(
    fake_neon: FakeNeon, followed: FollowedOperations
) -> None:
    fake_neon.start("a", ends=3)
    followed.follow([operation("a")], deadline=300)
    followed.follow([operation("a")], deadline=300)
    assert await followed.wait_until_one_finishes()
    assert len(followed.settled) == 1


async def test_failure_that_lasts_releases_all_operations(
    fake_neon: FakeNeon, followed: FollowedOperations
) -> None:
    fake_neon.start("a", ends=3)
    followed.follow([operation("a"), operation("unknown")], deadline=300)
    while await followed.wait_until_one_finishes():
        assert followed.pending
    assert isinstance(followed.last_error, NotFoundError)
    assert not followed.pending


async def test_interrupted_wait_can_continue(
    fake_neon: FakeNeon, followed: FollowedOperations
) -> None:
    fake_neon.start("a", ends=10)
    followed.follow([operation("a")], deadline=300)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await followed.wait_until_one_finishes()
    assert await followed.wait_until_one_finishes()


async def test_closed_pollers_end_the_wait(
    fake_neon: FakeNeon, pollers: PollerRegistry, followed: FollowedOperations
) -> None:
    fake_neon.start("a", ends=10)
    followed.follow([operation("a")], deadline=300)
    wait = asyncio.create_task(followed.wait_until_one_finishes())
    await asyncio.sleep(1)
    await pollers.aclose()
    with pytest.raises(ClientClosedError):
        await wait
