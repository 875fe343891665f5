"""Messages in a stream of bytes that arrives in any parts."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_local.postgres.proxy.messages import Message
from neonctl_local.postgres.proxy.pooler.frames import (
    CLIENT_KINDS,
    CLIENT_LENGTHS,
    SERVER_KINDS,
    Splitter,
)
from neonctl_local.postgres.proxy.pooler.phases import INVALID

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


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"d\0\0\0\3", b"invalid message length"),
        (b"d\xff\xff\xff\xff", b"invalid message length"),
        (b"Q\x3f\xff\xff\xff", b"invalid message length"),
        (b"C\0\0\x27\x11", b"invalid message length"),
        (b"p\0\0\0\4", b"invalid frontend message type 112"),
        (b"GET / HTTP/1.1\r\n", b"invalid frontend message type 71"),
    ],
)
def test_nothing_follows_what_is_no_message(data: bytes, reason: bytes) -> None:
    splitter = Splitter(CLIENT_KINDS, CLIENT_LENGTHS)
    sync = Message(b"S", b"").encode()
    frames = [*splitter.feed(sync + data + sync), *splitter.feed(sync)]
    assert [(frame.kind, frame.data) for frame in frames] == [(ord("S"), sync), (INVALID, reason)]


def test_part_of_a_message_says_that_it_is_one() -> None:
    splitter, data = Splitter(b"Q"), Message(b"D", bytes(9)).encode()
    parts = [data[:5], data[5:9], data[9:] + data + data[:6]]
    frames = [frame for part in parts for frame in splitter.feed(part)]
    assert [frame.data for frame in frames] == [*parts[:2], data[9:], data + data[:6]]
    assert [frame.is_partial for frame in frames] == [True, True, False, True]


@pytest.mark.parametrize("kind", [b"D", b"E"])
def test_long_rows_and_errors_are_not_kept(kind: bytes) -> None:
    splitter, part = Splitter(SERVER_KINDS), bytes(100_000)
    frames = list(splitter.feed(Message(kind, part * 50).encode()[:2000]))
    assert [frame.kind for frame in frames] == [0 if kind == b"D" else ord("E")]
    tracemalloc.start()
    for _ in range(40):
        assert [frame.kind for frame in splitter.feed(part)] == [0]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500_000
