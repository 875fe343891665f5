import struct

import pytest

from neonctl_async.connections.startup import (
    MAX_MESSAGE_BYTES,
    MAX_TEXT_CHARACTERS,
    ServerRefusedError,
    StartupExchange,
    Step,
)
from tests.connections.postgres_server import SASL, SSL_REQUEST, STARTING_UP, error

PARAMETERS = {"user": "ada", "database": "shop"}
STARTUP = b"\0\0\0\x20\0\3\0\0user\0ada\0database\0shop\0\0"
NOTICE = b"N" + struct.pack("!i", 6) + b"\0\0"
OLD_PROTOCOL = b"v" + struct.pack("!iii", 12, 3 << 16, 0)


def plain() -> StartupExchange:
    return StartupExchange(PARAMETERS, tls=False, needs_tls=False)


def with_tls(*, needs_tls: bool = True) -> StartupExchange:
    return StartupExchange(PARAMETERS, tls=True, needs_tls=needs_tls)


def message(kind: bytes, payload: bytes) -> bytes:
    return kind + struct.pack("!i", len(payload) + 4) + payload


AUTHENTICATIONS = [
    *(message(b"R", struct.pack("!i", kind)) for kind in (0, 3, 10)),  # none, cleartext, SASL
    message(b"R", struct.pack("!i4s", 5, b"salt")),  # MD5
]


def refusal(exchange: StartupExchange, data: bytes) -> ServerRefusedError:
    with pytest.raises(ServerRefusedError) as caught:
        exchange.receive(data)
    return caught.value


def test_first_packet_without_tls_is_the_startup_message() -> None:
    assert plain().first_bytes == STARTUP
    assert len(STARTUP) == 0x20


def test_first_packet_with_tls_is_the_request_for_tls() -> None:
    assert with_tls().first_bytes == SSL_REQUEST
    assert with_tls().startup_message() == STARTUP


@pytest.mark.parametrize("authentication", AUTHENTICATIONS)
def test_request_for_authentication_is_the_end(authentication: bytes) -> None:
    assert plain().receive(authentication) is Step.DONE


def test_notices_are_skipped() -> None:
    assert plain().receive(OLD_PROTOCOL + NOTICE + SASL) is Step.DONE


def test_message_may_arrive_in_parts() -> None:
    exchange = plain()
    steps = [exchange.receive(bytes([byte])) for byte in NOTICE + SASL]
    assert steps == [Step.RECEIVE] * (len(NOTICE + SASL) - 1) + [Step.DONE]


def test_accepted_tls_is_started() -> None:
    exchange = with_tls()
    assert exchange.receive(b"S") is Step.START_TLS
    assert exchange.receive(SASL) is Step.DONE


def test_refused_tls_is_an_error_if_it_is_needed() -> None:
    error = refusal(with_tls(), b"N")
    assert (error.stage, str(error)) == ("tls", "it does not accept TLS connections")
    assert not error.is_final


def test_session_starts_without_tls_if_it_is_optional() -> None:
    exchange = with_tls(needs_tls=False)
    assert exchange.receive(b"N") is Step.SEND_STARTUP
    assert exchange.receive(SASL) is Step.DONE


def test_bytes_between_the_acceptance_and_the_handshake_are_refused() -> None:
    assert "but sent b'SR" in str(refusal(with_tls(), b"S" + SASL))


@pytest.mark.parametrize("exchange", [plain(), with_tls()])
def test_error_response_is_the_reason(exchange: StartupExchange) -> None:
    error = refusal(exchange, STARTING_UP)
    reason = "it responded: the database system is starting up (SQLSTATE 57P03)"
    assert (error.stage, str(error)) == ("startup", reason)


@pytest.mark.parametrize(
    ("code", "is_final"),
    [
        ("57P03", False),
        ("57P01", False),
        ("53300", False),
        ("08006", False),
        ("XX000", False),
        ("", False),
        ("28000", True),
        ("28P01", True),
        ("3D000", True),
        ("42704", True),
        ("22023", True),
        ("0A000", True),
        ("08P01", True),
    ],
)
def test_code_decides_whether_a_refusal_is_final(code: str, is_final: bool) -> None:
    assert refusal(plain(), error("no", code)).is_final is is_final


def test_control_characters_of_an_error_are_removed() -> None:
    assert str(refusal(plain(), error("a\n\x1b[31mb", "X\x07"))) == (
        "it responded: a [31mb (SQLSTATE X)"
    )


def test_long_error_is_shortened() -> None:
    assert len(str(refusal(plain(), error("x" * 9000, "57P03")))) < MAX_TEXT_CHARACTERS + 50


def test_error_without_fields_has_a_reason() -> None:
    assert str(refusal(plain(), message(b"E", b"\0"))) == (
        "it responded: an error without a message"
    )


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x01\0\x02\x02\x46",
        b"R\0\0\0\3",
        b"E\xff\xff\xff\xff",
        b"E" + struct.pack("!i", MAX_MESSAGE_BYTES),
        b"EFATAL: sorry, too many clients already\n\0",
        b"\0",
    ],
)
@pytest.mark.parametrize("is_encrypted", [False, True])
def test_other_protocols_are_refused(garbage: bytes, is_encrypted: bool) -> None:
    exchange = with_tls() if is_encrypted else plain()
    error = refusal(exchange, garbage)
    assert error.stage == "startup"
    assert str(error).startswith("it does not speak the Postgres protocol, but sent b")
    assert not error.is_final
