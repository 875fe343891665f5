"""Who keeps the control plane of a test run: the main process, for all workers of pytest-xdist."""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import NamedTuple, Protocol

_STOP_SECONDS = 5.0


class ServerURLs(NamedTuple):
    """Where a control plane is served, and the console that rules it."""

    base_url: str
    control_url: str
    control_token: str

    def __repr__(self) -> str:
        return f"<Plane {self.base_url}>"


class CloudAccount:
    """The platform, as the environment names it when a run begins: what tests do to it is theirs.

    ``base_url`` is None where the environment names none. The repr shows no key.
    """

    NEEDED = ("NEON_API_KEY", "NEON_PROJECT_ID")

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.api_key: str = environment["NEON_API_KEY"]
        self.project_id: str = environment["NEON_PROJECT_ID"]
        self.base_url: str | None = environment.get("NEON_API_HOST") or None


class ServerSource(Protocol):
    """Knows the control plane of the run."""

    def plane(self) -> ServerURLs:
        """The control plane, started if this is the first time that someone asks."""
        ...


class ServerProcess:
    """Starts the control plane as a process, which ends with this one, however that ends."""

    def __init__(self, operation_seconds: float) -> None:
        self._operation_seconds = operation_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._plane: ServerURLs | None = None
        self._starting = threading.Lock()

    def plane(self) -> ServerURLs:
        """The control plane, started if this is the first time that someone asks."""
        with self._starting:
            if self._plane is None:
                self._plane = self._start()
            return self._plane

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with self._process as process:
                assert process.stdin is not None
                process.stdin.close()  # the sign to stop
                try:
                    process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()

    def _start(self) -> ServerURLs:
        self._process = process = subprocess.Popen(
            [
                sys.executable,
                "-P",  # no module of the directory that the tests run in
                "-m",
                "neonctl_async.testing.plugin.server",
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
        return ServerURLs(*json.loads(line))
