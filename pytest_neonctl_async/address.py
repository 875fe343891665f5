"""A socket where workers of pytest-xdist get the URLs of the local control plane."""

import hmac
import json
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from pytest_neonctl_async.targets import ServerURLs

_RESPONSE_SECONDS = 60.0
_REQUEST_SECONDS = 2.0


class ServerAddress(NamedTuple):
    """The port and token of an :class:`AddressServer`. The repr shows no token."""

    port: int
    token: str

    def __repr__(self) -> str:
        return f"<ServerAddress {self.port}>"


def fetch_urls(address: ServerAddress) -> ServerURLs:
    """Request the URLs from the main process. The first request starts the local control plane.

    Raise RuntimeError if it does not start, or if the main process refuses the request.
    """
    with socket.create_connection(("127.0.0.1", address.port), _RESPONSE_SECONDS) as connection:
        connection.sendall(f"{address.token}\n".encode())
        with connection.makefile("rb") as stream:
            response = json.loads(stream.read() or '{"error": "the main process is ending"}')
    if "error" in response:
        raise RuntimeError(response["error"])
    return ServerURLs(**response)


class AddressServer:
    """Sends the result of ``get_urls`` to every client that knows the token, in a thread."""

    def __init__(self, get_urls: Callable[[], ServerURLs]) -> None:
        self._get_urls = get_urls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._is_closing = False
        self.address: Final = ServerAddress(self._listener.getsockname()[1], secrets.token_hex(16))
        self._thread = threading.Thread(target=self._serve, name="neonctl-async", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and close the socket."""
        self._is_closing = True
        with suppress(OSError):  # a connection wakes the thread
            socket.create_connection(("127.0.0.1", self.address.port), timeout=1).close()
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                if self._is_closing:
                    return
                with suppress(OSError):  # the worker may have died
                    self._respond(connection)

    def _respond(self, connection: socket.socket) -> None:
        connection.settimeout(_REQUEST_SECONDS)
        with connection.makefile("rb") as stream:
            token = stream.readline(100).strip()
        if not hmac.compare_digest(token, self.address.token.encode()):
            return
        try:
            response = self._get_urls()._asdict()
        except (OSError, RuntimeError, ValueError) as error:
            response = {"error": str(error)}
        connection.sendall(json.dumps(response).encode())
