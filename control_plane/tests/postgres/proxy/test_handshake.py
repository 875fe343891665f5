"""The first packets of a client, with and without TLS."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from struct import pack

import pytest

from neonctl_local.postgres.proxy.certificates import Certificates, private_certificates
from neonctl_local.postgres.proxy.errors import ComputeRefusedError, ProtocolError
from neonctl_local.postgres.proxy.handshake import ClientHello, prepare_tls, read_hello
from neonctl_local.postgres.proxy.startup import CancelRequest, StartupMessage
from neonctl_local.postgres.proxy.streams import Stream, attempt

SSL_REQUEST = pack("!ii", 8, 80877103)
GSS_REQUEST = pack("!ii", 8, 80877104)
STARTUP = StartupMessage(3 << 16, {b"user": b"me"})
CANCEL = CancelRequest(b"12345678")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    directory: Path = tmp_path_factory.mktemp("certificates")
    certificates = private_certificates(directory, ["*.neon.invalid"])
    prepare_tls(certificates.context)
    return certificates


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Stream, Stream]]:
    """The stream of a client, and the stream of the proxy."""
    one, other = socket.socketpair()
    one.settimeout(0)
    other.settimeout(0)
    client, proxy = Stream(one), Stream(other)
    yield client, proxy
    client.sock.close()
    proxy.sock.close()


async def start_tls(client: Stream, certificates: Certificates, *protocols: str) -> None:
    context = ssl.create_default_context(cafile=certificates.ca_file)
    if protocols:
        context.set_alpn_protocols(protocols)
    connection = context.wrap_socket(
        client.sock, server_hostname="ep-frost.neon.invalid", do_handshake_on_connect=False
    )
    client.sock = connection
    await attempt(connection, connection.do_handshake)


async def test_session_starts_without_tls(pair: tuple[Stream, Stream]) -> None:
    client, proxy = pair
    await client.send(STARTUP.encode())
    assert await read_hello(proxy, None) == ClientHello(STARTUP, None)


async def test_encryption_is_refused_without_a_certificate(pair: tuple[Stream, Stream]) -> None:
    client, proxy = pair
    reading = asyncio.create_task(read_hello(proxy, None))
    for request in (GSS_REQUEST, SSL_REQUEST):
        await client.send(request)
        assert await client.read_exactly(1) == b"N"
    await client.send(STARTUP.encode())
    assert await reading == ClientHello(STARTUP, None)


async def test_server_name_of_tls_is_reported(
    pair: tuple[Stream, Stream], certificates: Certificates
) -> None:
    client, proxy = pair
    reading = asyncio.create_task(read_hello(proxy, certificates.context))
    await client.send(SSL_REQUEST)
    assert await client.read_exactly(1) == b"S"
    await start_tls(client, certificates)
    await client.send(STARTUP.encode())
    assert await reading == ClientHello(STARTUP, "ep-frost.neon.invalid")


async def test_tls_may_start_without_a_request(
    pair: tuple[Stream, Stream], certificates: Certificates
) -> None:
    client, proxy = pair
    reading = asyncio.create_task(read_hello(proxy, certificates.context))
    await start_tls(client, certificates, "postgresql")
    await client.send(STARTUP.encode())
    assert await reading == ClientHello(STARTUP, "ep-frost.neon.invalid")


@pytest.mark.parametrize("protocols", [(), ("http/1.1",)])
async def test_tls_without_a_request_needs_the_protocol_of_postgres(
    pair: tuple[Stream, Stream], certificates: Certificates, protocols: tuple[str, ...]
) -> None:
    client, proxy = pair
    reading = asyncio.create_task(read_hello(proxy, certificates.context))
    await start_tls(client, certificates, *protocols)
    with pytest.raises(ProtocolError, match="without ALPN"):
        await reading


async def test_tls_without_a_request_needs_a_certificate(pair: tuple[Stream, Stream]) -> None:
    client, proxy = pair
    await client.send(b"\x16\x03\x01")
    with pytest.raises(ProtocolError, match="does not use TLS"):
        await read_hello(proxy, None)


async def test_session_without_tls_is_refused_if_tls_is_required(
    pair: tuple[Stream, Stream], certificates: Certificates
) -> None:
    client, proxy = pair
    await client.send(STARTUP.encode())
    with pytest.raises(ComputeRefusedError, match="connection is insecure"):
        await read_hello(proxy, certificates.context)


async def test_query_may_be_cancelled_without_tls(
    pair: tuple[Stream, Stream], certificates: Certificates
) -> None:
    client, proxy = pair
    await client.send(CANCEL.encode())
    assert await read_hello(proxy, certificates.context) == ClientHello(CANCEL, None)


@pytest.mark.parametrize("request_twice", [SSL_REQUEST * 2, GSS_REQUEST * 2])
async def test_encryption_may_be_requested_only_once(
    pair: tuple[Stream, Stream], request_twice: bytes
) -> None:
    client, proxy = pair
    await client.send(request_twice)
    with pytest.raises(ProtocolError, match="only once"):
        await read_hello(proxy, None)


async def test_encryption_may_not_be_requested_inside_tls(
    pair: tuple[Stream, Stream], certificates: Certificates
) -> None:
    client, proxy = pair
    reading = asyncio.create_task(read_hello(proxy, certificates.context))
    await start_tls(client, certificates, "postgresql")
    await client.send(SSL_REQUEST)
    with pytest.raises(ProtocolError, match="only once"):
        await reading


async def test_startup_before_the_tls_handshake_is_not_read(
    pair: tuple[Stream, Stream], certificates: Certificates
) -> None:
    """Bytes that an attacker inserts before TLS starts must not count as bytes of the client."""
    client, proxy = pair
    await client.send(SSL_REQUEST + STARTUP.encode())
    with pytest.raises(ssl.SSLError):
        await read_hello(proxy, certificates.context)


async def test_client_may_disconnect_instead(pair: tuple[Stream, Stream]) -> None:
    client, proxy = pair
    await client.send(STARTUP.encode()[:-1])
    client.sock.close()
    with pytest.raises(EOFError):
        await read_hello(proxy, None)
