"""A Postgres server for the tests of the proxy, without the code that manages clusters."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg

from control_plane.tests.postgres.server import copy_with_password
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.programs import program_environment
from neonctl_local.postgres.template import ADMINISTRATOR, Template, password_file

ROLE: Final = "tester"
PASSWORD: Final = "pässword;$ 1"
DATABASE: Final = "postgres"
_PORT: Final = 5432
_SETTINGS: Final = {
    "listen_addresses": "",
    "fsync": "off",
    "shared_buffers": "8MB",
    "max_connections": "30",
}


class Server(NamedTuple):
    """A running server. It accepts the role ``ROLE`` with ``PASSWORD``."""

    process: subprocess.Popen[Any]
    directory: Path

    @property
    def socket(self) -> Path:
        return self.directory / f".s.PGSQL.{_PORT}"

    def stored_password(self, role: str) -> str | None:
        """Return the row of a role in ``pg_authid``."""
        with _administrator(self.directory) as connection:
            query = "select rolpassword from pg_authid where rolname = %s"
            row = connection.execute(query, [role]).fetchone()
        return row[0] if row else None


@contextmanager
def running_server(
    installation: Installation,
    template: Template,
    account: ServerAccount | None,
    **others: str,
) -> Generator[Server]:
    """Run a server in a temporary directory, with ``others`` among its settings."""
    root = Path(tempfile.mkdtemp(prefix="neonctl-test-"))
    root.chmod(0o711)
    try:
        data = root / "data"
        copy_with_password(template.directory, data, account=account)
        own = {"unix_socket_directories": str(data), "port": str(_PORT)}
        settings = _SETTINGS | own | others
        with (root / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    installation.program("postgres"),
                    *("-D", data),
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=program_environment(),
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
            )
        try:
            _create_role(process, data)
            yield Server(process, data)
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait()
    finally:
        shutil.rmtree(root)


def _create_role(process: subprocess.Popen[Any], data: Path) -> None:
    """Create the role of the tests, once the server accepts connections."""
    while process.poll() is None:
        try:
            with _administrator(data) as connection:
                connection.execute(
                    f"create role {ROLE} superuser login password '{PASSWORD}'".encode()
                )
                return
        except psycopg.OperationalError:
            time.sleep(0.02)
    log = data.with_name("log").read_text(encoding="utf-8", errors="replace")
    raise RuntimeError(f"the server of the tests exited with {process.returncode}: {log}")


def _administrator(data: Path) -> psycopg.Connection[Any]:
    password = password_file(data).read_text(encoding="utf-8")
    return psycopg.connect(
        host=str(data), dbname=DATABASE, user=ADMINISTRATOR, password=password, autocommit=True
    )
