"""A socket through which pytest-xdist workers reach the main process of their test run."""

import hmac
import json
import secrets
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, TextIO, TypeAlias

from pytest_neonctl_async.once import LocalClaims, Outcome, PreparationError
from pytest_neonctl_async.server_process import ServerURLs

_ENDING: Final = "the main process is ending"
_RESPONSE_SECONDS = 60.0
_REQUEST_SECONDS = 2.0
_REQUEST_CHARACTERS = 8192

GetURLs: TypeAlias = Callable[[str | None], ServerURLs]
"""Returns the URLs. Takes the same argument as :meth:`ServerProcess.urls`."""


class ServerAddress(NamedTuple):
    """The port and token of an :class:`AddressServer`. The repr hides the token."""

    port: int
    token: str

    def __repr__(self) -> str:
        return f"<ServerAddress {self.port}>"


class _Connection:
    """A connection of a worker to the main process. Each message is one line of JSON."""

    def __init__(
        self,
        address: ServerAddress,
        request: str,
        argument: object = None,
        *,
        timeout: float | None = _RESPONSE_SECONDS,
    ) -> None:
        try:
            self._socket = socket.create_connection(("127.0.0.1", address.port), _RESPONSE_SECONDS)
        except ConnectionError:
            raise RuntimeError(_ENDING) from None
        self._socket.settimeout(timeout)
        self._stream = self._socket.makefile("rw", encoding="utf-8")
        try:
            self.send({"token": address.token, "request": request, "argument": argument})
        except OSError:
            self.close()
            raise RuntimeError(_ENDING) from None

    def send(self, message: object) -> None:
        _write(self._stream, message)

    def receive(self) -> dict[str, object]:
        """Return the next message. Raise RuntimeError if it is an error."""
        try:
            line = self._stream.readline()
        except ConnectionError:
            line = ""
        message: dict[str, object] = json.loads(line) if line else {"error": _ENDING}
        if message.get("error") is not None:
            raise RuntimeError(message["error"])
        return message

    def close(self) -> None:
        with suppress(OSError):  # what was not sent is lost: the main process has stopped
            self._stream.close()
        self._socket.close()


def fetch_urls(address: ServerAddress, postgres: str | None) -> ServerURLs:
    """Request the URLs from the main process. The first request starts the local control plane.

    Raise RuntimeError if it does not start, or if the main process refuses the request.
    """
    connection = _Connection(address, "urls", postgres)
    try:
        return ServerURLs(**connection.receive())  # type: ignore[arg-type]  # see _respond()
    finally:
        connection.close()


class RemoteClaims:
    """Claims a step for a worker. The main process releases the claim if the worker dies."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._connection: _Connection | None = None

    def claim(self) -> Outcome | None:
        """Return the outcome, or None if the caller must perform the step.

        Raise PreparationError if the step failed.
        """
        # No timeout, because the migrations of another worker may take minutes.
        self._connection = connection = _Connection(self._address, "claim", timeout=None)
        try:
            message = connection.receive()
        except RuntimeError as error:
            self.release()
            raise PreparationError(str(error)) from None
        except BaseException:
            self.release()
            raise
        result = message.get("result")
        if result is None:
            return None
        self.release()
        return Outcome(str(result))

    def record(self, outcome: Outcome) -> None:
        """Send the outcome to the main process."""
        if self._connection is not None:
            with suppress(OSError):  # the main process has stopped
                self._connection.send(outcome._asdict())
        self.release()

    def release(self) -> None:
        """Close the connection, which releases a claim without an outcome."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class AddressServer:
    """Sends URLs to workers that know the token, and assigns a step to one worker. Uses threads."""

    def __init__(self, get_urls: GetURLs, claims: LocalClaims) -> None:
        self._get_urls = get_urls
        self._claims = claims
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._is_closing = False
        self.address: Final = ServerAddress(self._listener.getsockname()[1], secrets.token_hex(16))
        self._thread = threading.Thread(target=self._accept, name="neonctl-async", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the threads and close the socket."""
        self._is_closing = True
        self._claims.record(Outcome(error=_ENDING))
        with suppress(OSError):  # a connection wakes the thread
            socket.create_connection(("127.0.0.1", self.address.port), timeout=1).close()
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._is_closing:
                connection.close()
                return
            # A daemon, because a worker may keep its connection open for a long time.
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # The worker may have died, or another program may send anything.
        with connection, suppress(OSError, ValueError, KeyError, TypeError):
            connection.settimeout(_REQUEST_SECONDS)
            with connection.makefile("rw", encoding="utf-8") as stream:
                message = json.loads(stream.readline(_REQUEST_CHARACTERS))
                if not hmac.compare_digest(message["token"], self.address.token):
                    return
                if message["request"] == "claim":
                    connection.settimeout(None)
                    self._assign(connection, stream)
                else:
                    _write(stream, self._urls(message["argument"]))

    def _urls(self, argument: str | None) -> dict[str, object]:
        try:
            return self._get_urls(argument)._asdict()
        except (OSError, RuntimeError, ValueError) as error:
            return {"error": str(error)}

    def _assign(self, connection: socket.socket, stream: TextIO) -> None:
        """Assign the step to a worker as soon as no other worker has it, or send the outcome."""
        outcome = self._claims.claim()
        if outcome is not None:
            _write(stream, outcome._asdict())
        elif is_closed(connection):
            self._claims.release(is_attempt=False)
        else:
            self._await_outcome(stream)

    def _await_outcome(self, stream: TextIO) -> None:
        try:
            _write(stream, {})
            outcome = Outcome(**json.loads(stream.readline()))
        except (OSError, ValueError):  # no line: the worker died, or the step was interrupted
            self._claims.release()
        else:
            self._claims.record(outcome)


def is_closed(connection: socket.socket) -> bool:
    """Return whether the peer, which is not expected to send anything, has closed a connection."""
    return bool(select.select([connection], [], [], 0)[0])


def _write(stream: TextIO, message: object) -> None:
    stream.write(json.dumps(message) + "\n")
    stream.flush()
