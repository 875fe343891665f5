"""Password logins: by clients to the proxy, and by the proxy to servers.

Servers require SCRAM-SHA-256. Their signatures are not checked, because their sockets are in a
directory that only the servers' account can write to.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from neonctl_local.postgres.proxy.errors import ComputeRefusedError, ProtocolError
from neonctl_local.postgres.proxy.handshake import channel_binding
from neonctl_local.postgres.proxy.hashing import hash_for
from neonctl_local.postgres.proxy.messages import (
    AUTHENTICATION_CLEARTEXT,
    AUTHENTICATION_OK,
    AUTHENTICATION_SASL,
    AUTHENTICATION_SASL_CONTINUE,
    AUTHENTICATION_SASL_FINAL,
    ERROR,
    HEADER_LENGTH,
    INT32,
    Message,
    authentication,
    decode_header,
    with_neons_quotes,
)
from neonctl_local.postgres.proxy.routing import MISSING_ENDPOINT
from neonctl_local.postgres.proxy.scram import Scram, ScramServer, Secret, Verifier
from neonctl_local.postgres.proxy.streams import Stream

MAX_PASSWORD_LENGTH: Final = 10_000

_AUTHENTICATION: Final = b"R"
_PASSWORD: Final = b"p"


async def request_password(client: Stream) -> bytes:
    """Request a client's password in clear text.

    Raise ComputeRefusedError if others could read the password on its way.
    """
    if not client.is_private():
        raise ComputeRefusedError(MISSING_ENDPOINT)
    await client.send(authentication(AUTHENTICATION_CLEARTEXT))
    password = await _read_response(client)
    if not password.endswith(b"\0"):
        raise ProtocolError("Malformed password message: missing terminator")
    return password[:-1]


async def _read_response(client: Stream) -> bytes:
    kind, length = decode_header(await client.read_exactly(HEADER_LENGTH))
    if kind != _PASSWORD or length < 1:
        raise ProtocolError("expected password response")
    if length > MAX_PASSWORD_LENGTH:
        raise ProtocolError(
            f"the password message has {length} bytes: expected at most {MAX_PASSWORD_LENGTH}"
        )
    return await client.read_exactly(length)


async def authenticate(
    client: Stream | None,
    user: str,
    verifier: Verifier | None,
    password: bytes | None = None,
    *,
    compute: str,
) -> Secret:
    """Check a client's password, or log the client in with SCRAM if it is None. Return its secret.

    ``verifier`` is None for a role that cannot log in; refusing it takes as long as for a wrong
    password. Passwords for one ``compute`` are checked one at a time. Raise ComputeRefusedError for
    a wrong password. Afterwards, the client still expects AuthenticationOk.
    """
    checked = verifier or Verifier.unknown(user)
    if password is None:
        assert client is not None, "a client of this process sends its password"
        secret = await _exchange(client, checked)
    else:
        secret = await hash_for(compute, checked.secret_of, password)
    if secret is None:
        raise wrong_password(user)
    return secret


async def _exchange(client: Stream, verifier: Verifier) -> Secret | None:
    """Authenticate a client with SCRAM. Return None if its password is wrong."""
    exchange = ScramServer(verifier, channel_binding(client))
    offered = b"".join(b"%b\0" % mechanism for mechanism in exchange.mechanisms())
    await client.send(authentication(AUTHENTICATION_SASL, offered + b"\0"))
    mechanism, _, rest = (await _read_response(client)).partition(b"\0")
    challenge = exchange.challenge(mechanism, rest[INT32.size :])
    await client.send(authentication(AUTHENTICATION_SASL_CONTINUE, challenge))
    finished = exchange.finish(await _read_response(client))
    if finished is None:
        return None
    signature, secret = finished
    await client.send(authentication(AUTHENTICATION_SASL_FINAL, signature))
    return secret


def wrong_password(user: str) -> ComputeRefusedError:
    """Return Neon's error for a wrong password, with Postgres's SQLSTATE."""
    return ComputeRefusedError(f"password authentication failed for user '{user}'", "28P01")


async def log_in(
    server: Stream,
    password: bytes | Secret,
    message: Message,
    receive: Callable[[bytes], Awaitable[None]],
) -> bool:
    """Log in to a server. Return whether it accepted the password.

    ``message`` is the server's first message. ``receive`` is called with AuthenticationOk, and with
    all messages that are not part of the login, such as the error for a wrong password.
    """
    exchange = Scram(password)
    while True:
        kind, data = _authentication(message)
        if kind in (None, AUTHENTICATION_OK):
            await receive(with_neons_quotes(message.encode()))
        if kind == AUTHENTICATION_OK or message.kind == ERROR:
            return kind == AUTHENTICATION_OK
        if kind == AUTHENTICATION_SASL:
            await server.send(exchange.first())
        elif kind == AUTHENTICATION_SASL_CONTINUE:
            compute = server.sock.getpeername()
            await server.send(await hash_for(compute, exchange.final, data))
        elif kind not in (None, AUTHENTICATION_SASL_FINAL):
            raise ComputeRefusedError(f"Unsupported authentication method: {kind}")
        message = await server.read_message()


def _authentication(message: Message) -> tuple[int | None, bytes]:
    """Return the kind and the data of an authentication message. Other messages have kind None."""
    if message.kind != _AUTHENTICATION or len(message.payload) < INT32.size:
        return None, b""
    [kind] = INT32.unpack_from(message.payload)
    return kind, message.payload[INT32.size :]
