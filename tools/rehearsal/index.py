"""Serves a folder of archives as a package index on loopback."""

import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

START_SECONDS = 30.0


@dataclass(frozen=True)
class Index:
    """A running package index: its URL, and the file in which it logs its requests."""

    url: str
    log: Path

    def downloads(self) -> dict[str, int]:
        """Return how often each archive was downloaded."""
        return counted(self.log.read_text(encoding="utf-8"))


def counted(log: str) -> dict[str, int]:
    """Return how often each archive was downloaded, according to a log."""
    found: dict[str, int] = {}
    for name in re.findall(r'"GET /packages/(\S+) HTTP/[\d.]+" 200 ', log):
        found[name] = found.get(name, 0) + 1
    return found


@contextmanager
def serve(folder: Path, log: Path) -> Generator[Index]:
    """Serve the archives of a folder until the block ends.

    Requests for other packages receive 404, so that installers use their own index for them.
    """
    port = _free_port()
    log.touch()
    # The log of wsgiref has the form that counted() reads.
    options = ["--server", "wsgiref", "--disable-fallback", "--verbose"]
    logs = ["--log-stream", "none", "--log-file", str(log)]
    command = [sys.executable, "-m", "pypiserver", "run", "--host", "127.0.0.1"]
    server = subprocess.Popen(
        [*command, "--port", str(port), *options, *logs, str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}/simple/"
        _wait_until_ready(server, url)
        yield Index(url, log)
    finally:
        server.terminate()
        server.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _wait_until_ready(server: subprocess.Popen[bytes], url: str) -> None:
    # Without an empty ProxyHandler, urllib would send the request to the proxy of the machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with opener.open(url, timeout=5):
                return
        except (URLError, TimeoutError):
            time.sleep(0.1)
    raise RuntimeError(f"the package index did not start at {url}: run it alone to see its error")
