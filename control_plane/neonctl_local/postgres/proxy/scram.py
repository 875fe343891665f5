"""SCRAM-SHA-256 (RFC 5802 and RFC 7677), the Postgres login. Pure: messages in, messages out.

The proxy is the client of the servers. It is the server for clients whose password it checks
itself, for example because they use the pooler, or because they use TLS: only the proxy can bind
the exchange to its certificate.
"""

import base64
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from typing import Final, NamedTuple, Self

from neonctl_local.postgres.proxy.errors import ComputeRefusedError, ProtocolError
from neonctl_local.postgres.proxy.messages import INT32, Message

MECHANISM: Final = b"SCRAM-SHA-256"
MECHANISM_PLUS: Final = b"SCRAM-SHA-256-PLUS"
"""The mechanism with channel binding."""

_PASSWORD: Final = b"p"
_NO_BINDING: Final = b"n,,"
_BINDING: Final = b"p=tls-server-end-point,,"
_BASE64: Final = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_KEY: Final = "[A-Za-z0-9+/]{43}="
"""32 bytes in base64."""
_CHALLENGE: Final = re.compile(rf"r=([!-+\--~]+),s=({_BASE64}),i=([1-9][0-9]{{0,8}})".encode())
_FIRST: Final = re.compile(rb"(n,,|y,,|p=[A-Za-z0-9.-]+,,)(n=[^,]*,r=([!-+\--~]+))")
_FINAL: Final = re.compile(rf"(c=({_BASE64}),r=([!-+\--~]+)),p=({_KEY})".encode())
_VERIFIER: Final = re.compile(rf"SCRAM-SHA-256\$([1-9][0-9]{{0,8}}):({_BASE64})\$({_KEY}):({_KEY})")
_VIOLATION: Final = "authentication protocol violation"
_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 100_000
"""The largest number of iterations computed here: 24 times Postgres's default, about 0.1 seconds.

Roles choose the number, up to 999,999,999, and nothing can cancel the computation.
"""

_MOCK_KEY: Final = secrets.token_bytes(32)
"""The key from which the salts of roles that do not exist are derived."""


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


class Secret(NamedTuple):
    """A value, derived from a password, that is enough to log in where its verifier is stored."""

    client_key: bytes

    def __repr__(self) -> str:
        return "<Secret>"


class Verifier(NamedTuple):
    """The values that a server stores in place of a password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return "<Verifier>"

    @classmethod
    def parse(cls, stored: str | None) -> Self | None:
        """Parse a password from ``pg_authid``. Return None if it is not a SCRAM verifier."""
        match = _VERIFIER.fullmatch(stored or "")
        if match is None:
            return None
        salt, stored_key, server_key = (base64.b64decode(match[n]) for n in (2, 3, 4))
        return cls(int(match[1]), salt, stored_key, server_key)

    @classmethod
    def unknown(cls, user: str) -> Self:
        """Return a verifier that no password matches, for a role that does not exist.

        Like Postgres, derive the salt from the name, so that the role seems to exist.
        """
        salt = _hmac(_MOCK_KEY, user.encode())[:16]
        return cls(_ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32))

    def secret_of(self, password: bytes) -> Secret | None:
        """Return the secret of a password, or None if the password is wrong.

        This takes milliseconds. Raise ComputeRefusedError if the verifier has more than
        :data:`MAX_ITERATIONS`.
        """
        key = _client_key(password, self.salt, self.iterations)
        return Secret(key) if self.accepts(key) else None

    def accepts(self, client_key: bytes) -> bool:
        """Return whether a key belongs to the password."""
        return hmac.compare_digest(hashlib.sha256(client_key).digest(), self.stored_key)


def _client_key(password: bytes, salt: bytes, iterations: int) -> bytes:
    if iterations > MAX_ITERATIONS:
        raise ComputeRefusedError(
            f"the password of this role has {iterations} SCRAM iterations: expected at most"
            f" {MAX_ITERATIONS} for a client that sends the password itself. Log in with SCRAM, or"
            " set the password again with a lower scram_iterations",
            "28000",
        )
    salted = hashlib.pbkdf2_hmac("sha256", prepare_password(password), salt, iterations)
    return _hmac(salted, b"Client Key")


class Scram:
    """The client's side of one exchange.

    Postgres takes the user name from the startup message, so ``user`` stays empty.
    """

    def __init__(
        self, password: bytes | Secret, *, user: str = "", nonce: str | None = None
    ) -> None:
        self._password = password
        self._first = f"n={user},r={nonce or secrets.token_urlsafe(18)}".encode()

    def __repr__(self) -> str:
        return "<Scram>"

    def first(self) -> bytes:
        """Return the message that starts the exchange."""
        data = _NO_BINDING + self._first
        return Message(_PASSWORD, MECHANISM + b"\0" + INT32.pack(len(data)) + data).encode()

    def final(self, challenge: bytes) -> bytes:
        """Return the response to the server's challenge. With a password, this takes milliseconds.

        Raise ComputeRefusedError if the server requests more than :data:`MAX_ITERATIONS`.
        """
        match = _CHALLENGE.fullmatch(challenge)
        if match is None:
            raise ComputeRefusedError("the server sent a malformed SCRAM challenge")
        if isinstance(self._password, Secret):
            key = self._password.client_key
        else:
            salt = base64.b64decode(match[2])
            key = _client_key(self._password, salt, int(match[3]))
        unproven = b"c=" + base64.b64encode(_NO_BINDING) + b",r=" + match[1]
        signature = _hmac(
            hashlib.sha256(key).digest(), b",".join((self._first, challenge, unproven))
        )
        proof = base64.b64encode(_xor(key, signature))
        return Message(_PASSWORD, unproven + b",p=" + proof).encode()


class ScramServer:
    """The server's side of one exchange. ``binding`` is the hash of the TLS certificate."""

    def __init__(self, verifier: Verifier, binding: bytes | None) -> None:
        self._verifier = verifier
        self._binding = binding
        self._header = self._first = self._challenge = self._nonce = b""

    def mechanisms(self) -> list[bytes]:
        """Return the mechanisms that the client may choose."""
        return [MECHANISM] if self._binding is None else [MECHANISM_PLUS, MECHANISM]

    def challenge(self, mechanism: bytes, first: bytes) -> bytes:
        """Return the challenge for the client's first message."""
        if mechanism not in self.mechanisms():
            shown = mechanism.decode(errors="replace")
            raise ProtocolError(f"Unsupported authentication method: {shown}")
        match = _FIRST.fullmatch(first)
        if match is None:
            raise ProtocolError(_VIOLATION)
        self._header, self._first = match[1], match[2]
        if self._header == b"y,," and self._binding is not None:
            raise ComputeRefusedError("SCRAM-PLUS not used", "28000")
        if (self._header == _BINDING) != (mechanism == MECHANISM_PLUS):
            raise ProtocolError(_VIOLATION)
        self._nonce = match[3] + secrets.token_urlsafe(18).encode()
        salt = base64.b64encode(self._verifier.salt)
        self._challenge = b"r=%b,s=%b,i=%d" % (self._nonce, salt, self._verifier.iterations)
        return self._challenge

    def finish(self, final: bytes) -> tuple[bytes, Secret] | None:
        """Return the server's signature and the client's secret, or None for a wrong password."""
        match = _FINAL.fullmatch(final)
        if match is None or match[3] != self._nonce:
            raise ProtocolError(_VIOLATION)
        bound = self._binding if self._header == _BINDING and self._binding else b""
        if base64.b64decode(match[2]) != self._header + bound:
            raise ComputeRefusedError("insecure connection: secure channel data mismatch", "28000")
        signed = b",".join((self._first, self._challenge, match[1]))
        proof = base64.b64decode(match[4])
        secret = Secret(_xor(proof, _hmac(self._verifier.stored_key, signed)))
        if not self._verifier.accepts(secret.client_key):
            return None
        return b"v=" + base64.b64encode(_hmac(self._verifier.server_key, signed)), secret


def prepare_password(password: bytes) -> bytes:
    """Return the SASLprep form (RFC 4013) of a password.

    Like Postgres, return the password itself if it has no such form.
    """
    try:
        text = password.decode()
    except UnicodeDecodeError:
        return password
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char
        for char in text
        if not stringprep.in_table_b1(char)
    )
    normal = unicodedata.normalize("NFKC", mapped)
    return normal.encode() if normal and not _is_prohibited(normal) else password


_PROHIBITED: Final = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def _is_prohibited(text: str) -> bool:
    """Return whether SASLprep refuses a string for its characters or mixed text directions."""
    if any(in_table(char) for in_table in _PROHIBITED for char in text):
        return True
    if not any(map(stringprep.in_table_d1, text)):
        return False
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return not ends or any(map(stringprep.in_table_d2, text))
