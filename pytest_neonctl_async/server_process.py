"""The process of the local control plane. The main process of a test run owns it."""

import json
import subprocess
import sys
import threading

from pytest_neonctl_async.targets import ServerURLs

_STOP_SECONDS = 5.0


class ServerProcess:
    """Starts the local control plane as a subprocess, which stops when this process exits."""

    def __init__(self, operation_seconds: float) -> None:
        self._operation_seconds = operation_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._urls: ServerURLs | None = None
        self._lock = threading.Lock()

    def urls(self) -> ServerURLs:
        """Return the URLs of the local control plane. The first call starts it.

        Raise RuntimeError if it does not start.
        """
        with self._lock:
            if self._urls is None:
                self._urls = self._start()
            return self._urls

    def close(self) -> None:
        """Stop the subprocess."""
        if self._process is not None:
            with self._process as process:
                assert process.stdin is not None
                process.stdin.close()  # the signal to stop
                try:
                    process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()

    def _start(self) -> ServerURLs:
        self._process = process = subprocess.Popen(
            [
                sys.executable,
                "-P",  # do not import modules from the directory of the tests
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
            raise RuntimeError("the local control plane did not start: see its output on stderr")
        return ServerURLs(*json.loads(line))
