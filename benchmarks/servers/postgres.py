"""A Postgres server for the peers, with the settings of the local control plane's servers.

It listens on loopback and on a Unix socket. Every local user may connect without a password, as in
the servers that pytest-postgresql starts.
"""

import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Self

from benchmarks.servers.nginx import free_port
from neonctl_local.postgres.account import give, server_account
from neonctl_local.postgres.binaries import Installation, find_installations

SETTINGS = {
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_connections": "100",
    "track_commit_timestamp": "on",
}
USER = "postgres"
"""The administrator of the server."""
_START_SECONDS = 20.0


@cache
def newest_installation() -> Installation:
    """Return the Postgres version that the local control plane uses by default."""
    return next(iter(find_installations().values()))


def uri_of(port: int, database: str = "postgres") -> str:
    """Return the URI of a database of a server on loopback."""
    return f"postgresql://{USER}:unused@127.0.0.1:{port}/{database}?sslmode=disable"


class PostgresServer:
    """A data directory and its server. Each step can be run and timed alone."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        account = self._account = server_account()
        self._user = account.uid if account else None
        self._group = account.gid if account else None
        self._groups: list[int] | None = [] if account else None
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        # The account of the server can enter a directory in the system's temporary directory.
        self.folder = Path(tempfile.mkdtemp(prefix="bench-", dir="/tmp"))
        give(self.folder, self._account)

    def __enter__(self) -> Self:
        try:
            self.initialize()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    @property
    def socket(self) -> Path:
        """The Unix socket of the server."""
        return self.folder / f".s.PGSQL.{self.port}"

    def initialize(self) -> None:
        """Create the data directory."""
        options = ("-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        self._run("initdb", "-D", str(self.data), *options)

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        settings = SETTINGS | {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(self._installation.program("postgres")), "-D", str(self.data), *options]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=self._user,
                group=self._group,
                extra_groups=self._groups,
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """Stop the server; its connections are closed."""
        if self._process is not None:
            self._process.send_signal(2)
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        shutil.rmtree(self.folder)

    def uri(self, database: str = "postgres") -> str:
        """Return the URI of a database."""
        return uri_of(self.port, database)

    def _wait_until_ready(self) -> None:
        # The last line of the file changes when the server accepts connections.
        status = self.data / "postmaster.pid"
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if status.exists() and status.read_text().rstrip().endswith("ready"):
                return
            time.sleep(0.002)
        raise TimeoutError(f"the server is not ready after {_START_SECONDS} s: see its log file")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._installation.program(program)), *arguments]
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            cwd=self.folder,
            user=self._user,
            group=self._group,
            extra_groups=self._groups,
        )
