"""The ``Neon-Connection-String`` header: compute, role, password and database."""

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

HEADER: Final = "Neon-Connection-String"


class Target(NamedTuple):
    """The database of a request, and the role that connects to it."""

    parameters: Mapping[str, str]
    """The parameters of the startup message."""
    password: str
    server_name: str
    """The host name. Like a TLS server name, it may identify a compute."""

    def __repr__(self) -> str:
        return f"<Target {self.server_name}>"


def parse_target(header: str | None) -> Target:
    """Return the target of a connection string. Raise ValueError with Neon's message."""
    if header is None or not header.isascii():
        raise ValueError(f"invalid header: {HEADER.lower()}")
    try:
        url = urlsplit(header)
        host = url.hostname
    except ValueError:  # its message may contain the password
        raise ValueError("invalid connection string: the host is malformed") from None
    if url.scheme not in {"postgres", "postgresql"}:
        raise ValueError("incorrect scheme")
    database = unquote(url.path[1:].partition("/")[0])
    if not database:
        raise ValueError("missing database name")
    if not url.username:
        raise ValueError("missing username")
    if url.password is None:
        raise ValueError("missing authentication credentials: required password")
    if not host:
        raise ValueError("missing hostname")
    parameters = {"user": unquote(url.username), "database": database, "client_encoding": "UTF8"}
    if options := dict(parse_qsl(url.query)).get("options"):
        parameters["options"] = options
    if any("\0" in value for value in parameters.values()):
        raise ValueError("invalid connection string: it has a NUL character")
    return Target(parameters, unquote(url.password), host)
