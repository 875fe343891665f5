"""Reads the first packets of a client, and starts TLS if the client requests it."""

import ssl
from socket import MSG_PEEK
from typing import Final, NamedTuple

from neonctl_local.postgres.proxy.errors import ComputeRefusedError, ProtocolError
from neonctl_local.postgres.proxy.startup import (
    TLS_RECORD,
    CancelRequest,
    GSSENCRequest,
    SSLRequest,
    StartupMessage,
    StartupPacket,
    decode_length,
    decode_startup,
)
from neonctl_local.postgres.proxy.streams import Stream, attempt

ALPN_PROTOCOL: Final = "postgresql"
_REFUSE: Final = b"N"
_ACCEPT: Final = b"S"


class TLSContext(ssl.SSLContext):
    """A TLS context that also stores the hash of its certificate, for channel binding."""

    binding: bytes | None = None
    """The hash of the certificate, as RFC 5929 defines it for ``tls-server-end-point``."""


class TLSSocket(ssl.SSLSocket):
    """A TLS connection that remembers the server name that the client requested."""

    requested_name: str | None = None


def prepare_tls(context: ssl.SSLContext) -> None:
    """Make ``context`` accept the Postgres protocol, and remember server names."""
    context.sslsocket_class = TLSSocket
    context.set_alpn_protocols([ALPN_PROTOCOL])
    context.sni_callback = _remember_name


def _remember_name(
    connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _context: ssl.SSLContext
) -> None:
    if isinstance(connection, TLSSocket):
        connection.requested_name = name


def channel_binding(stream: Stream) -> bytes | None:
    """Return the hash of the certificate that a client received, or None if it is unknown."""
    context = stream.sock.context if isinstance(stream.sock, ssl.SSLSocket) else None
    return context.binding if isinstance(context, TLSContext) else None


class ClientHello(NamedTuple):
    """The first packet after encryption was negotiated, and the TLS server name."""

    packet: StartupMessage | CancelRequest
    server_name: str | None


async def read_hello(stream: Stream, tls: ssl.SSLContext | None) -> ClientHello:
    """Read packets until the client starts a session or cancels a query.

    Raise ProtocolError for invalid packets, ComputeRefusedError if the client must use TLS but does
    not, and EOFError or OSError if the connection breaks.
    """
    encrypted = False
    if await _starts_with_tls(stream):
        await _start_direct_tls(stream, tls)
        encrypted = True
    seen: set[type[StartupPacket]] = set()
    while True:
        packet = await _read_packet(stream)
        if isinstance(packet, StartupMessage | CancelRequest):
            break
        if type(packet) in seen or encrypted:
            raise ProtocolError("a client may request encryption only once")
        seen.add(type(packet))
        encrypted = await _negotiate(stream, packet, tls)
    if tls is not None and not encrypted and isinstance(packet, StartupMessage):
        raise ComputeRefusedError("connection is insecure (try using `sslmode=require`)")
    name = stream.sock.requested_name if isinstance(stream.sock, TLSSocket) else None
    return ClientHello(packet, name)


async def _read_packet(stream: Stream) -> StartupPacket:
    length = decode_length(await stream.read_exactly(4))
    return decode_startup(await stream.read_exactly(length))


async def _negotiate(
    stream: Stream, packet: SSLRequest | GSSENCRequest, tls: ssl.SSLContext | None
) -> bool:
    """Accept or refuse encryption. Return whether it was accepted."""
    if tls is None or isinstance(packet, GSSENCRequest):
        await stream.send(_REFUSE)
        return False
    await stream.send(_ACCEPT)
    await _start_tls(stream, tls)
    return True


async def _starts_with_tls(stream: Stream) -> bool:
    sock = stream.sock
    first = await attempt(sock, lambda: sock.recv(1, MSG_PEEK))
    return first == bytes([TLS_RECORD])


async def _start_direct_tls(stream: Stream, tls: ssl.SSLContext | None) -> None:
    if tls is None:
        raise ProtocolError("this proxy does not use TLS: connect with `sslmode=disable`")
    connection = await _start_tls(stream, tls)
    if connection.selected_alpn_protocol() != ALPN_PROTOCOL:
        raise ProtocolError(
            "received direct SSL connection request without ALPN protocol negotiation extension"
        )


async def _start_tls(stream: Stream, tls: ssl.SSLContext) -> ssl.SSLSocket:
    connection = tls.wrap_socket(stream.sock, server_side=True, do_handshake_on_connect=False)
    stream.sock = connection
    await attempt(connection, connection.do_handshake)
    return connection
