"""Sends the requests of the commands to a running local control plane.

The module needs neither aiohttp nor the client ``neonctl_async``.
"""

from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Final, Self, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from neonctl_local.server.names import is_loopback

T = TypeVar("T")

API: Final = "/api/v2"
CONSOLE: Final = "/local/v1"
_SECONDS: Final = 30.0
_PASTE: Final = "paste the lines that the server printed at its first start"


class CommandError(Exception):
    """The reason why a command failed."""


class ErrorBody(msgspec.Struct):
    """The body of an error response."""

    message: str


class Console:
    """Sends requests to the local control plane that the environment variables name."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._host = host
        self._port = port
        self._key = key

    @property
    def origin(self) -> str:
        """The origin of the console's pages."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read ``NEON_API_HOST``, ``NEON_API_KEY`` and ``NEON_ALLOW_HTTP``.

        Raise CommandError if they do not name a local control plane. A key never leaves the machine
        by mistake: other hosts are refused unless ``NEON_ALLOW_HTTP`` names them.
        """
        base_url = environment.get("NEON_API_HOST", "")
        key = environment.get("NEON_API_KEY", "")
        for name, value in (("NEON_API_HOST", base_url), ("NEON_API_KEY", key)):
            if not value:
                raise CommandError(f"{name} is not set: {_PASTE}")
        try:
            parts = urlsplit(base_url)
            host, port = parts.hostname or "", parts.port or 80
        except ValueError as error:
            raise CommandError(f"NEON_API_HOST is {base_url!r}: {error}; {_PASTE}") from None
        if parts.scheme != "http" or parts.path.rstrip("/") != API or parts.username is not None:
            raise CommandError(
                f"NEON_API_HOST is {_without_password(base_url)!r}: expected a local control "
                f"plane, like http://127.0.0.1:8080{API}; {_PASTE}"
            )
        allowed = [name.strip() for name in environment.get("NEON_ALLOW_HTTP", "").split(",")]
        if not is_loopback(host) and host not in allowed:
            raise CommandError(
                f"the host of NEON_API_HOST is {host!r}: it is not this machine; "
                f"set NEON_ALLOW_HTTP={host} if you trust the network in between"
            )
        if not (key.isascii() and key.isprintable()):
            raise CommandError(f"NEON_API_KEY has characters that no key has: {_PASTE}")
        return cls(host, port, key)

    def request(
        self, method: str, path: str, kind: type[T], body: object = None, *, base: str = API
    ) -> T:
        """Send a request and return its response. Raise CommandError for an error response."""
        connection = HTTPConnection(self._host, self._port, timeout=_SECONDS)
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, base + path, content, headers)
            response = connection.getresponse()
            received = response.read()
        except (OSError, HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise CommandError(
                f"no response from {self._host}:{self._port} ({reason}): is the local control "
                "plane running?"
            ) from None
        finally:
            connection.close()
        return _decoded(response.status, received, kind)


def segment(text: str) -> str:
    """Encode a string as one segment of a path."""
    return quote(text, safe="")


def _decoded(status: int, content: bytes, kind: type[T]) -> T:
    try:
        if status < 300:
            return msgspec.json.decode(content, type=kind)
        message = msgspec.json.decode(content, type=ErrorBody).message
    except msgspec.DecodeError:
        message = "this is not the response of a local control plane: check NEON_API_HOST"
    raise CommandError(f"{message} (status {status})")


def _without_password(url: str) -> str:
    scheme, separator, rest = url.rpartition("@")
    return f"…@{rest}" if separator else scheme + rest
