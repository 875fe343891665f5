"""Messages in a stream of bytes that arrives in any parts."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_local.postgres.proxy.errors import ProtocolError
from neonctl_local.postgres.proxy.messages import Message
from neonctl_local.postgres.proxy.pooler.frames import Splitter

MESSAGES = st.lists(st.builds(Message, st.sampled_from([b"Q", b"S", b"D"]), st.binary(max_size=9)))


@given(MESSAGES, st.integers(1, 20))
def test_parts_make_the_same_messages(messages: list[Message], length: int) -> None:
    data = b"".join(message.encode() for message in messages)
    splitter = Splitter(b"QS")
    parts = [data[start : start + length] for start in range(0, len(data), length)]
    frames = [frame for part in parts for frame in splitter.feed(part)]
    assert b"".join(frame.data for frame in frames) == data
    collected = [Message(frame.data[:1], frame.payload) for frame in frames if frame.kind]
    assert collected == [message for message in messages if message.kind != b"D"]


@pytest.mark.parametrize("length", [b"\0\0\0\3", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"])
def test_impossible_length_is_an_error(length: bytes) -> None:
    with pytest.raises(ProtocolError, match="invalid message length"):
        list(Splitter(b"Q").feed(b"D" + length))


def test_long_rows_are_not_kept() -> None:
    splitter, part = Splitter(b"Q"), bytes(100_000)
    list(splitter.feed(Message(b"D", part * 50).encode()[:10]))
    tracemalloc.start()
    for _ in range(40):
        assert [frame.kind for frame in splitter.feed(part)] == [0]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500_000
