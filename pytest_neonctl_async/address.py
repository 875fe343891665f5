"""How workers of pytest-xdist find the control plane: they ask the main process, at a door."""

import hmac
import json
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from pytest_neonctl_async.server_process import ServerURLs

_ANSWER_SECONDS = 60.0
_QUESTION_SECONDS = 2.0


class PlaneAddress(NamedTuple):
    """Where a worker asks for the control plane. Goes to the worker as a list."""

    port: int
    token: str

    def __repr__(self) -> str:
        return f"<Door {self.port}>"


class WorkerClient:
    """Asks the main process."""

    def __init__(self, address: PlaneAddress) -> None:
        self._door = address

    def plane(self) -> ServerURLs:
        """The control plane, started if this is the first time that a worker asks."""
        address = ("127.0.0.1", self._door.port)
        with socket.create_connection(address, timeout=_ANSWER_SECONDS) as connection:
            connection.sendall(f"{self._door.token}\n".encode())
            with connection.makefile("rb") as answer:
                told = json.loads(answer.read() or '{"error": "the main process is ending"}')
        if "error" in told:
            raise RuntimeError(told["error"])
        return ServerURLs(**told)


class AddressServer:
    """A socket where workers ask, and the thread that answers with what ``plane`` tells."""

    def __init__(self, plane: Callable[[], ServerURLs]) -> None:
        self._plane = plane
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._is_closing = False
        self.address: Final = PlaneAddress(self._listener.getsockname()[1], secrets.token_hex(16))
        self._thread = threading.Thread(target=self._serve, name="neonctl-async", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more."""
        self._is_closing = True
        with suppress(OSError):  # wakes the thread
            socket.create_connection(("127.0.0.1", self.address.port), timeout=1).close()
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                if self._is_closing:
                    return
                with suppress(OSError):  # a worker that has died meanwhile
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(_QUESTION_SECONDS)
        with connection.makefile("rb") as question:
            token = question.readline(100).strip()
        if not hmac.compare_digest(token, self.address.token.encode()):
            return
        try:
            told = self._plane()._asdict()
        except (OSError, RuntimeError, ValueError) as error:
            told = {"error": str(error)}
        connection.sendall(json.dumps(told).encode())
