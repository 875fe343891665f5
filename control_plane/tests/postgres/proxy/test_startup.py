"""Startup packets: every packet is read as Postgres reads it, and garbage is refused."""

from contextlib import suppress
from struct import pack

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neonctl_local.postgres.proxy.errors import ProtocolError
from neonctl_local.postgres.proxy.startup import (
    MAX_STARTUP_LENGTH,
    CancelRequest,
    GSSENCRequest,
    SSLRequest,
    StartupMessage,
    decode_length,
    decode_startup,
)

words = st.binary(min_size=1, max_size=20).map(lambda word: word.replace(b"\0", b"x"))
values = st.binary(max_size=20).map(lambda word: word.replace(b"\0", b"x"))
versions = st.sampled_from([0x30000, 0x30002])


@given(versions, st.dictionaries(words, values))
def test_startup_message_is_decoded_and_encoded_again(
    version: int, parameters: dict[bytes, bytes]
) -> None:
    message = StartupMessage(version, parameters)
    packet = message.encode()
    assert decode_length(packet[:4]) == len(packet) - 4
    assert decode_startup(packet[4:]) == message


@pytest.mark.parametrize(
    ("code", "expected"), [(80877103, SSLRequest()), (80877104, GSSENCRequest())]
)
def test_requests_for_encryption_are_decoded(code: int, expected: object) -> None:
    assert decode_startup(pack("!i", code)) == expected
    with pytest.raises(ProtocolError, match="invalid length"):
        decode_startup(pack("!i", code) + b"x")


@given(st.binary(min_size=8, max_size=260))
def test_cancel_request_is_decoded_with_a_key_of_any_length(key: bytes) -> None:
    packet = CancelRequest(key).encode()
    assert decode_startup(packet[4:]) == CancelRequest(key)


@pytest.mark.parametrize("length", [0, 4, 7, 261])
def test_cancel_key_of_a_wrong_length_is_refused(length: int) -> None:
    with pytest.raises(ProtocolError, match="cancel request"):
        decode_startup(CancelRequest(b"k" * length).encode()[4:])


@pytest.mark.parametrize(
    "length", [-(2**31), -1, 0, 4, 7, MAX_STARTUP_LENGTH + 1, 2**30, 2**31 - 1]
)
def test_packet_of_an_impossible_length_is_refused(length: int) -> None:
    with pytest.raises(ProtocolError, match="invalid length of startup packet"):
        decode_length(pack("!i", length))


@pytest.mark.parametrize(
    "rest", [b"", b"user", b"user\0me", b"user\0me\0", b"\0me\0\0", b"user\0me\0\0\0", b"a\0\0"]
)
def test_parameters_without_their_terminators_are_refused(rest: bytes) -> None:
    with pytest.raises(ProtocolError, match="invalid startup packet layout"):
        decode_startup(pack("!i", 3 << 16) + rest)


@pytest.mark.parametrize(("version", "name"), [(2 << 16, "2.0"), (4 << 16 | 1, "4.1"), (0, "0.0")])
def test_other_versions_of_the_protocol_are_refused(version: int, name: str) -> None:
    with pytest.raises(ProtocolError, match=f"unsupported frontend protocol {name}") as caught:
        decode_startup(pack("!i", version) + b"\0")
    assert caught.value.code == "0A000"


@given(st.binary(min_size=4, max_size=100))
@example(pack("!i", 3 << 16) + b"\xff\0\xff\0\0")
@example(pack("!i", -1))
def test_garbage_is_decoded_or_refused(body: bytes) -> None:
    with suppress(ProtocolError):
        decode_startup(body)


def test_reprs_show_no_parameters_and_no_keys() -> None:
    secret = {b"options": b"secret"}
    assert repr(StartupMessage(3 << 16 | 2, secret)) == "<StartupMessage of version 3.2>"
    assert repr(CancelRequest(b"secret key")) == "<CancelRequest>"
