"""SCRAM-SHA-256: both sides of an exchange, and the preparation of passwords."""

from contextlib import suppress
from struct import pack

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neonctl_local.postgres.configuration import make_verifier
from neonctl_local.postgres.proxy.errors import ComputeRefusedError, ProtocolError
from neonctl_local.postgres.proxy.messages import Message
from neonctl_local.postgres.proxy.scram import (
    MECHANISM,
    MECHANISM_PLUS,
    Scram,
    ScramServer,
    Secret,
    Verifier,
    prepare_password,
)

VIOLATION = "authentication protocol violation"


def test_exchange_matches_the_example_of_the_rfc() -> None:
    """The example of section 3 of RFC 7677."""
    scram = Scram(b"pencil", user="user", nonce="rOprNGfwEbeRWgbNEkqO")
    first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert (
        scram.first() == Message(b"p", b"SCRAM-SHA-256\0" + pack("!i", len(first)) + first).encode()
    )
    challenge = (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = scram.final(challenge)[5:]
    assert final.startswith(b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=")
    assert final.endswith(b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")


@pytest.mark.parametrize(
    "challenge",
    [
        b"", b"s=c2FsdA==", b"r=abc,s=c2FsdA==,i=many", b"garbage", b"r=x,s=*,i=1",
        b"r=x,s=YQ==,i=-1", b"r=x,s=Y,i=1",
    ],
)  # fmt: skip
def test_malformed_challenge_of_a_server_is_an_error(challenge: bytes) -> None:
    with pytest.raises(ComputeRefusedError, match="the server sent a malformed SCRAM challenge"):
        Scram(b"pencil").final(challenge)


def test_repr_shows_no_password() -> None:
    assert "pencil" not in repr(Scram(b"pencil"))


@pytest.mark.parametrize(
    ("password", "prepared"),
    [
        ("pencil", "pencil"),
        ("I\u00adX", "IX"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("\u0007", "\u0007"),
        ("\u0627\u0031", "\u0627\u0031"),
        ("\u0627\u0031\u0628", "\u0627\u0031\u0628"),
        ("\u00ad", "\u00ad"),
    ],
)
def test_passwords_are_prepared_as_postgres_does(password: str, prepared: str) -> None:
    assert prepare_password(password.encode()) == prepared.encode()


def test_password_in_another_encoding_is_unchanged() -> None:
    assert prepare_password(b"p\xe4ss") == b"p\xe4ss"


def start(client: Scram) -> bytes:
    return client.first()[5 + len(MECHANISM) + 5 :]


def exchange(client: Scram, server: ScramServer) -> tuple[bytes, Secret] | None:
    return server.finish(client.final(server.challenge(MECHANISM, start(client)))[5:])


@pytest.fixture(scope="module")
def verifier() -> Verifier:
    """The verifier of the password "pencil"."""
    verifier = Verifier.parse(make_verifier("pencil"))
    assert verifier is not None
    return verifier


KEY = "a" * 43 + "="


@pytest.mark.parametrize(
    "stored",
    [
        None, "", "md5abc", "SCRAM-SHA-256$4096:a$b:c", f"SCRAM-SHA-256$4096:a${KEY}:{KEY}",
        f"SCRAM-SHA-256$4096:YQ==${KEY}:{'=' * 44}",
    ],
)  # fmt: skip
def test_other_stored_passwords_have_no_verifier(stored: str | None) -> None:
    assert Verifier.parse(stored) is None


@pytest.mark.parametrize("password", [b"pencil", b"crayon"])
def test_server_accepts_the_right_password(verifier: Verifier, password: bytes) -> None:
    client, server = Scram(password), ScramServer(verifier, None)
    finished = exchange(client, server)
    assert (finished is not None) == (password == b"pencil")
    assert verifier.secret_of(password) == (finished and finished[1])


def test_secret_of_a_client_logs_in_like_its_password(verifier: Verifier) -> None:
    secret = verifier.secret_of(b"pencil")
    assert isinstance(secret, Secret)
    client, server = Scram(secret), ScramServer(verifier, None)
    assert exchange(client, server) is not None
    assert str(secret.client_key) not in f"{secret} {verifier}"


@pytest.mark.parametrize(
    ("mechanism", "first", "error"),
    [
        (b"SCRAM-SHA-1", b"n,,n=,r=abc", "Unsupported authentication method: SCRAM-SHA-1"),
        (MECHANISM, b"y,,n=,r=abc", "SCRAM-PLUS not used"),
        (MECHANISM_PLUS, b"n,,n=,r=abc", VIOLATION),
        (MECHANISM, b"p=tls-server-end-point,,n=,r=abc", VIOLATION),
        (MECHANISM_PLUS, b"p=tls-unique,,n=,r=abc", VIOLATION),
        (MECHANISM, b"garbage", VIOLATION),
    ],
)
def test_wrong_start_of_an_exchange_is_refused(
    verifier: Verifier, mechanism: bytes, first: bytes, error: str
) -> None:
    with pytest.raises(ComputeRefusedError, match=error):
        ScramServer(verifier, b"hash").challenge(mechanism, first)


def test_final_message_belongs_to_its_exchange(verifier: Verifier) -> None:
    client, server, other = Scram(b"pencil"), *(ScramServer(verifier, None) for _ in range(2))
    server.challenge(MECHANISM, start(client))
    final = client.final(other.challenge(MECHANISM, start(client)))[5:]
    for wrong in (final, b"", b"garbage"):
        with pytest.raises(ProtocolError, match=VIOLATION):
            server.finish(wrong)


@given(
    st.binary() | st.text("abnprcy=,+/0", max_size=60).map(str.encode), st.text("ab+/=", max_size=9)
)
@example(b"", "a")
def test_garbage_of_a_client_is_refused(verifier: Verifier, garbage: bytes, binding: str) -> None:
    server = ScramServer(verifier, None)
    with suppress(ComputeRefusedError):
        server.challenge(MECHANISM, garbage)
    nonce, _, _ = server.challenge(MECHANISM, start(Scram(b"pencil"))).split(b",")
    for final in (garbage, b"c=%b,%b,p=%b" % (binding.encode(), nonce, KEY.encode())):
        with pytest.raises(ComputeRefusedError):
            server.finish(final)
