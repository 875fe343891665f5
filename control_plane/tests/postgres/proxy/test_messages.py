"""Messages of the Postgres protocol."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_local.postgres.proxy.messages import (
    Message,
    authentication,
    decode_header,
    error_response,
    with_neons_quotes,
)


@given(st.binary(min_size=1, max_size=1), st.binary(max_size=100))
def test_header_has_the_type_and_the_length_of_the_payload(kind: bytes, payload: bytes) -> None:
    encoded = Message(kind, payload).encode()
    assert decode_header(encoded[:5]) == (kind, len(payload))
    assert encoded[5:] == payload


def test_error_has_a_severity_a_code_and_a_message() -> None:
    assert error_response("no compute", "XX000") == (
        b"E\0\0\0\x26SFATAL\0VFATAL\0CXX000\0Mno compute\0\0"
    )


def test_error_message_cannot_end_its_field_early() -> None:
    assert error_response("a\0Mb", "XX000").count(b"\0M") == 1


def test_repr_shows_no_payload() -> None:
    assert repr(Message(b"p", b"secret")) == "<Message b'p' of 6 bytes>"


@pytest.mark.parametrize("user", ["ada", 'a"b', "pässword", ""])
def test_wrong_password_has_the_quotes_of_neon(user: str) -> None:
    text = "password authentication failed for user "
    sent = error_response(f'{text}"{user}"', "28P01")
    before, after = authentication(0), Message(b"Z", b"I").encode()
    changed = with_neons_quotes(before + sent + after)
    assert changed == before + error_response(f"{text}'{user}'", "28P01") + after


@pytest.mark.parametrize("code", ["28000", "3D000"])
def test_other_errors_keep_their_quotes(code: str) -> None:
    sent = error_response('password authentication failed for user "ada"', code)
    assert with_neons_quotes(sent) == sent
