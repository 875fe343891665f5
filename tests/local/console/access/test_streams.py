"""The open streams: bounded, and ended with their session."""

import asyncio
from contextlib import ExitStack

import pytest

from neonctl_async.local.console.access.sessions import LIFETIME, Account, Session, Sessions
from neonctl_async.local.console.access.streams import MAXIMUM, Streams


@pytest.fixture
def sessions() -> Sessions[str]:
    return Sessions(lambda: 0.0)


@pytest.fixture
def session(sessions: Sessions[str]) -> Session[str]:
    found = sessions.find(sessions.create(Account("tenant", "user")))
    assert found is not None
    return found


@pytest.fixture
def streams() -> Streams:
    return Streams(lambda: 0.0)


async def test_oldest_stream_ends_when_there_are_too_many(
    streams: Streams, session: Session[str]
) -> None:
    with ExitStack() as stack:
        ends = [stack.enter_context(streams.open(session)) for _ in range(MAXIMUM)]
        assert not any(end.is_set() for end in ends)
        newest = stack.enter_context(streams.open(session))
        assert [end.is_set() for end in (*ends[:2], newest)] == [True, False, False]
        assert len(streams) == MAXIMUM
    assert len(streams) == 0


async def test_streams_end_with_their_session(streams: Streams, session: Session[str]) -> None:
    with streams.open(session) as end:
        session.end()
        assert end.is_set()
    with streams.open(session) as end:
        assert end.is_set()


async def test_streams_end_with_the_server(streams: Streams, session: Session[str]) -> None:
    with streams.open(session) as end:
        streams.close()
        assert end.is_set()
    with streams.open(session) as end:
        assert end.is_set()


@pytest.mark.virtual_time
async def test_stream_ends_when_its_session_expires(session: Session[str]) -> None:
    streams = Streams(lambda: 0.0)
    loop = asyncio.get_running_loop()
    started = loop.time()
    with streams.open(session) as end:
        await end.wait()
    assert loop.time() - started == pytest.approx(LIFETIME)
