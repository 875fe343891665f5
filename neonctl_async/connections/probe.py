"""One attempt to reach a compute: name lookup, TCP, TLS and the start of a Postgres session.

A probe sends neither a password nor user data, so it accepts every certificate.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import cache, partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio

from neonctl_async.connections.addresses import Address
from neonctl_async.connections.startup import ServerRefusedError, StartupExchange, Step

if TYPE_CHECKING:
    from anyio.abc import ByteStream, SocketStream

Stage: TypeAlias = Literal["dns", "tcp", "tls", "startup"]
"""A step of an attempt to connect."""

ATTEMPT_SECONDS: Final = 10.0
"""The time limit for everything after the name lookup. Afterwards, a new attempt is more likely to
succeed."""
HEAD_START_SECONDS: Final = 0.25
"""The longest time until the next address of a host is tried (RFC 8305)."""
READ_BYTES: Final = 4096


class NotReadyError(Exception):
    """An attempt failed at a stage. ``is_final`` is True if a later attempt would fail too."""

    def __init__(self, stage: Stage, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.stage: Stage = stage
        self.is_final = is_final


class Probe:
    """One attempt to connect to an address. ``lookups`` runs the name lookups in threads."""

    def __init__(self, address: Address, lookups: Executor | None = None) -> None:
        self.stage: Stage = "dns"
        """The stage that the attempt has reached."""
        self._address = address
        self._lookups = lookups

    async def run(self) -> None:
        """Make the attempt, up to the request for authentication. Raises NotReadyError."""
        if self._address.is_reserved:
            raise NotReadyError("dns", _emulated(self._address.host), is_final=True)
        # Not limited: a cancelled lookup continues in its thread, and the next lookup needs another
        # thread.
        ips = await _look_up(self._address, self._lookups)
        with anyio.move_on_after(ATTEMPT_SECONDS):
            await self._connect(ips)
            return
        raise NotReadyError(self.stage, f"{self.pending} within {ATTEMPT_SECONDS:g} s")

    @property
    def pending(self) -> str:
        """A description of the response that has not arrived yet."""
        address = self._address
        return {
            "dns": f"the lookup of the host name {address.host} has not finished",
            "tcp": f"no TCP connection to {address}",
            "tls": f"no response to the TLS handshake from {address}",
            "startup": f"no response to the startup message from {address}",
        }[self.stage]

    async def _connect(self, ips: Sequence[str]) -> None:
        self.stage = "tcp"
        try:
            tcp = await _open(ips, self._address.port)
        except OSError as error:
            raise NotReadyError("tcp", f"{self.pending}: {_reason(error)}") from None
        try:
            await self._exchange(tcp)
        except ServerRefusedError as error:
            reason = f"the server at {self._address} is not ready: {error}"
            raise NotReadyError(error.stage, reason, is_final=error.is_final) from None
        except (anyio.EndOfStream, anyio.BrokenResourceError, ssl.SSLZeroReturnError):
            reason = f"the server at {self._address} closed the connection"
            raise NotReadyError(self.stage, reason) from None
        except ssl.SSLError as error:
            reason = f"the TLS handshake with {self._address} failed: {_reason(error)}"
            raise NotReadyError(self.stage, reason) from None
        finally:
            await anyio.aclose_forcefully(tcp)

    async def _exchange(self, tcp: "SocketStream") -> None:
        """Send and receive messages until the server requests authentication."""
        address = self._address
        exchange = StartupExchange(
            address.parameters, tls=address.uses_tls, needs_tls=address.needs_tls
        )
        stream: ByteStream = tcp
        self.stage = "tls" if address.uses_tls else "startup"
        await stream.send(exchange.first_bytes)
        while (step := exchange.receive(await stream.receive(READ_BYTES))) is not Step.DONE:
            if step is Step.RECEIVE:
                continue
            if step is Step.START_TLS:
                from anyio.streams.tls import TLSStream  # noqa: PLC0415 - only a probe needs it

                stream = await TLSStream.wrap(
                    tcp,
                    server_side=False,
                    hostname=address.host,  # the server name selects the compute
                    ssl_context=_any_certificate(),
                    standard_compatible=False,
                )
            self.stage = "startup"
            await stream.send(exchange.startup_message())


async def _look_up(address: Address, threads: Executor | None) -> list[str]:
    """Return the IP addresses of a host in order of preference. Raises NotReadyError."""
    with suppress(ValueError):
        return [str(ip_address(address.host))]
    look_up = partial(socket.getaddrinfo, address.host, address.port, type=socket.SOCK_STREAM)
    try:
        found = await asyncio.get_running_loop().run_in_executor(threads, look_up)
    except (OSError, UnicodeError) as error:
        reason = f"the host name {address.host} has no address: {_reason(error)}"
        raise NotReadyError("dns", reason) from None
    return list(dict.fromkeys(str(name[0]) for *_, name in found))


async def _open(ips: Sequence[str], port: int) -> "SocketStream":
    """Connect to one of the addresses. Raises the first OSError if all attempts fail."""
    opened: list[SocketStream] = []
    errors: list[OSError] = []

    async def connect(ip: str, finished: anyio.Event) -> None:
        try:
            opened.append(await anyio.connect_tcp(ip, port))
        except OSError as error:
            errors.append(error)
        else:
            attempts.cancel_scope.cancel()
        finally:
            finished.set()

    try:
        async with anyio.create_task_group() as attempts:
            for ip in ips:
                finished = anyio.Event()
                attempts.start_soon(connect, ip, finished)
                with anyio.move_on_after(HEAD_START_SECONDS):
                    await finished.wait()
    except BaseException:
        await _close(opened)
        raise
    if not opened:
        raise errors[0]
    await _close(opened[1:])
    return opened[0]


async def _close(streams: "Sequence[SocketStream]") -> None:
    with anyio.CancelScope(shield=True):  # else a cancelled scope leaves all but the first open
        for stream in streams:
            await anyio.aclose_forcefully(stream)


def _reason(error: Exception) -> str:
    """Return the reason for a failure in the words of the operating system."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error  # as anyio wraps it
    if isinstance(cause, ssl.SSLError):
        return cause.reason or str(cause)
    if isinstance(cause, socket.gaierror):
        return cause.strerror or str(cause)
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno)
    return str(cause)


def _emulated(host: str) -> str:
    return (
        f"the host name {host} never resolves, because this local control plane emulates its "
        "databases: start it with real ones (--postgres, or LocalControlPlane(postgres=True))"
    )


@cache
def _any_certificate() -> ssl.SSLContext:
    """Return the TLS settings of all probes. They verify nothing: probes send no secrets."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
