"""The process of the local control plane. The main process of a test run owns it."""

import json
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final, NamedTuple

OPERATION_SECONDS: Final = 0.001
"""The default duration of an operation: not 0, so that operations are pending at first."""
_STOP_SECONDS = 10.0


class ServerURLs(NamedTuple):
    """The URLs of a local control plane and of its control server. The repr hides the token."""

    base_url: str
    control_url: str
    control_token: str

    def __repr__(self) -> str:
        return f"<ServerURLs {self.base_url}>"


class ServerProcess:
    """Starts the local control plane as a subprocess, which stops when this process exits."""

    def __init__(
        self, operation_seconds: float = OPERATION_SECONDS, *, keeps_failed: bool = False
    ) -> None:
        self._operation_seconds = operation_seconds
        self._keeps_failed = keeps_failed
        self._postgres: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._urls: ServerURLs | None = None
        self._error: str | None = None
        self._lock = threading.Lock()

    def urls(self, postgres: str | None = None) -> ServerURLs:
        """Return the URLs of the local control plane. The first call starts it.

        ``postgres`` is None without databases. Otherwise it is the directory of the Postgres
        programs, or empty to search for them. It must be the same in every call.

        Raise RuntimeError if the local control plane does not start.
        """
        with self._lock:
            if self._process is None:
                self._postgres = postgres
                self._start()
            if self._error is not None:
                raise RuntimeError(self._error)
            if postgres != self._postgres:
                raise RuntimeError(
                    f"neon_postgres is {postgres!r}, but the local control plane of this test run "
                    f"was started with {self._postgres!r}: define the fixture neon_postgres once, "
                    "in the topmost conftest.py"
                )
            assert self._urls is not None, "the local control plane has started"
            return self._urls

    def close(self) -> int | None:
        """Stop the subprocess, unless it keeps databases of failed tests: then return its PID."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.closed:
            return None
        assert process.stdout is not None
        process.stdin.close()  # the signal to stop
        if self._keeps_failed and process.stdout.readline():
            process.stdout.close()
            process.returncode = 0  # otherwise, Python would warn that the process still runs
            return process.pid
        with process:
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        if process.returncode < 0 and self._postgres is not None:
            from neonctl_local import remove_leftovers

            remove_leftovers()
        return None

    def _start(self) -> None:
        options = [f"--operation-seconds={self._operation_seconds}"]
        if self._postgres is not None:
            options.append(f"--postgres={self._postgres}")
        output = "its output on stderr"
        with ExitStack() as stack:
            log: IO[bytes] | None = None
            if self._keeps_failed:
                # A process that outlives pytest must not keep the output of pytest open.
                kept_in = Path(tempfile.mkdtemp(prefix="neonctl-failed-"))
                options.append(f"--kept-in={kept_in}")
                log = stack.enter_context((kept_in / "log").open("wb"))
                output = log.name
            self._process = process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",  # do not import modules from the directory of the tests
                    "-m",
                    "pytest_neonctl_async.server",
                    *options,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            process.wait()
            self._error = f"the local control plane did not start: see {output}"
            return
        message = json.loads(line)
        if isinstance(message, str):
            process.wait()
            self._error = f"the local control plane did not start: {message}"
        else:
            self._urls = ServerURLs(*message)
