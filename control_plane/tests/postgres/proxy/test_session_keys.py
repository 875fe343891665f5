"""Keys of sessions in the messages of a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_local.postgres.proxy.messages import Message, authentication
from neonctl_local.postgres.proxy.session_keys import SessionKeyScanner

START = authentication(10, b"SCRAM-SHA-256\0\0") + authentication(0)
PARAMETERS = Message(b"S", b"TimeZone\0Etc/UTC\0").encode() * 3
READY = Message(b"Z", b"I").encode()


def key_message(key: bytes) -> bytes:
    return Message(b"K", key).encode()


@given(st.data(), st.binary(min_size=8, max_size=260))
def test_key_is_found_in_any_pieces(data: st.DataObject, key: bytes) -> None:
    stream = START + PARAMETERS + key_message(key) + READY
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    scanner = SessionKeyScanner()
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        scanner.feed(stream[start:end])
    assert (scanner.key, scanner.done) == (key, True)


@pytest.mark.parametrize("stream", [READY, START + READY, b"E\xff\xff\xff\xffgarbage"])
def test_search_stops_without_a_key(stream: bytes) -> None:
    scanner = SessionKeyScanner()
    scanner.feed(stream + key_message(b"12345678"))
    assert (scanner.key, scanner.done) == (None, True)


def test_later_messages_are_not_read() -> None:
    scanner = SessionKeyScanner()
    scanner.feed(key_message(b"12345678"))
    scanner.feed(key_message(b"87654321"))
    assert scanner.key == b"12345678"
