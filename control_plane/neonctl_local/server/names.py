"""The names of a server: its public host, and the hosts that requests may name."""

import ipaddress
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import msgspec

_HOST_NAME: Final = re.compile(r"[\w.-]+|[0-9a-fA-F:.]+", re.ASCII)
_AUTHORITY: Final = re.compile(
    r"(?P<host>\[[0-9a-fA-F:.]{2,45}\]|[\w.-]{1,253})(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)

Authority = tuple[str, int | None]
"""A host in lower case, without brackets, and the port if there is one."""


def parse_authority(text: str) -> Authority | None:
    """Return the host and port of a string like ``localhost:8080``, or None for other strings."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    host = match["host"].lower().strip("[]").removesuffix(".")
    port = match["port"]
    return (host, None if port is None else int(port)) if host else None


def is_loopback(host: str) -> bool:
    """Return whether ``host`` is only reachable from this machine."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    """Return whether ``host`` is an IP address, without brackets."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class ServerNames(msgspec.Struct):
    """The names under which clients may address the server.

    A server on loopback accepts the loopback names with its own port. An exposed server accepts all
    IP addresses, the loopback names and its public name, with any port, because containers map
    ports. ``allowed`` adds names; a name without a port is valid with any port.
    """

    public: str
    exposed: bool
    allowed: frozenset[Authority] = frozenset()
    ports: frozenset[int] = frozenset()

    def include(self, authority: Authority) -> bool:
        """Return whether this is a name of the server."""
        host, port = authority
        if authority in self.allowed or (host, None) in self.allowed:
            return True
        if self.exposed:
            return host in {"localhost", self.public.lower()} or is_address(host)
        return is_loopback(host) and (80 if port is None else port) in self.ports

    def __str__(self) -> str:
        ports = sorted(self.ports)
        local = [f"{host}:{port}" for host in ("127.0.0.1", "localhost") for port in ports]
        public = [self.public] if self.exposed else []
        return " or ".join([*public, *local])


def parse_allowed_hosts(names: Iterable[str]) -> frozenset[Authority]:
    """Return the hosts of ``allowed_hosts``. Raise ValueError for a string that is not a host."""
    if isinstance(names, str):
        raise TypeError(f"allowed_hosts is the text {names!r}: pass a list of names")
    allowed: set[Authority] = set()
    for name in names:
        authority = parse_authority(name)
        if authority is None:
            raise ValueError(
                f"the allowed host is {name!r}: expected a host name or IP address, with or "
                "without a port, such as 'control-plane' or 'localhost:9000'"
            )
        allowed.add(authority)
    return frozenset(allowed)


def public_host(host: str, *, expose: bool | str) -> str:
    """Return the host in the base URL: the name from ``expose``, or the address to connect to.

    Raises ValueError if ``expose`` is neither a host name nor an IP address, or if it is not a
    loopback name although the server listens on loopback.
    """
    if isinstance(expose, str):
        if not _HOST_NAME.fullmatch(expose):
            raise ValueError(
                f"expose is {expose!r}: expected the host name or IP address by which clients "
                "reach the server, without a scheme or a port"
            )
        if is_loopback(host) and not is_loopback(expose):
            raise ValueError(
                f"expose is {expose!r}, but the server listens on {host} only: pass the host "
                "0.0.0.0 to listen on all addresses"
            )
        return expose
    with suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:  # clients cannot connect to 0.0.0.0
            return "::1" if ":" in host else "127.0.0.1"
    return host


def parse_origins(origins: Iterable[str]) -> frozenset[str]:
    """Return the origins of web pages. Raise ValueError for a string that is not an origin."""
    if isinstance(origins, str):
        raise TypeError(f"allowed_origins is the text {origins!r}: pass a list of origins")
    found = frozenset(origins)
    for origin in found:
        scheme, _, authority = origin.partition("://")
        if scheme not in {"http", "https"} or parse_authority(authority) is None:
            raise ValueError(
                f"{origin!r} is not an origin: expected one such as 'http://localhost:3000'"
            )
    return found
