"""Who keeps the control plane of a test run: the main process, for all workers of pytest-xdist."""

import hmac
import json
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple, Protocol

_STOP_SECONDS = 5.0
_ANSWER_SECONDS = 60.0
_QUESTION_SECONDS = 2.0


class Plane(NamedTuple):
    """Where a control plane is served, and the console that rules it."""

    base_url: str
    console_url: str
    console_token: str

    def __repr__(self) -> str:
        return f"<Plane {self.base_url}>"


class Platform:
    """The platform, as the environment names it when a run begins: what tests do to it is theirs.

    ``base_url`` is None where the environment names none. The repr shows no key.
    """

    NEEDED = ("NEON_API_KEY", "NEON_PROJECT_ID")

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.api_key = environment["NEON_API_KEY"]
        self.project_id = environment["NEON_PROJECT_ID"]
        self.base_url = environment.get("NEON_API_HOST") or None


class Door(NamedTuple):
    """Where a worker asks for the control plane. Goes to the worker as a list."""

    port: int
    token: str

    def __repr__(self) -> str:
        return f"<Door {self.port}>"


class Host(Protocol):
    """Knows the control plane of the run."""

    def plane(self) -> Plane:
        """The control plane, started if this is the first time that someone asks."""
        ...


class MainHost:
    """Starts the control plane as a process, which ends with this one, however that ends."""

    def __init__(self, operation_seconds: float) -> None:
        self._operation_seconds = operation_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._plane: Plane | None = None
        self._starting = threading.Lock()
        self._door: _OpenDoor | None = None

    def plane(self) -> Plane:
        """The control plane, started if this is the first time that someone asks."""
        with self._starting:
            if self._plane is None:
                self._plane = self._start()
            return self._plane

    def door(self) -> Door:
        """What a worker needs for a :class:`WorkerHost`."""
        if self._door is None:
            self._door = _OpenDoor(self)
        return self._door.address

    def close(self) -> None:
        """End the process."""
        if self._door is not None:
            self._door.close()
        if self._process is not None:
            with self._process as process:
                assert process.stdin is not None
                process.stdin.close()  # the sign to stop
                try:
                    process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()

    def _start(self) -> Plane:
        self._process = process = subprocess.Popen(
            [
                sys.executable,
                "-P",  # no module of the directory that the tests run in
                "-m",
                "neonctl_async.testing.server",
                f"--operation-seconds={self._operation_seconds}",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            process.wait()
            raise RuntimeError("the local control plane did not start: it says why on stderr")
        return Plane(*json.loads(line))


class WorkerHost:
    """Asks the main process."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def plane(self) -> Plane:
        """The control plane, started if this is the first time that a worker asks."""
        address = ("127.0.0.1", self._door.port)
        with socket.create_connection(address, timeout=_ANSWER_SECONDS) as connection:
            connection.sendall(f"{self._door.token}\n".encode())
            with connection.makefile("rb") as answer:
                told = json.loads(answer.read() or '{"error": "the main process is ending"}')
        if "error" in told:
            raise RuntimeError(told["error"])
        return Plane(**told)


class _OpenDoor:
    """A socket where workers ask, and the thread that answers."""

    def __init__(self, host: MainHost) -> None:
        self._host = host
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._is_closing = False
        self.address = Door(self._listener.getsockname()[1], secrets.token_hex(16))
        self._thread = threading.Thread(target=self._serve, name="neonctl-async", daemon=True)
        self._thread.start()

    def close(self) -> None:
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
            told = self._host.plane()._asdict()
        except (OSError, RuntimeError, ValueError) as error:
            told = {"error": str(error)}
        connection.sendall(json.dumps(told).encode())
