"""PgBouncer in transaction mode, to compare the pooler with."""

import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from control_plane.tests.postgres.proxy.server import PASSWORD, ROLE, Server
from neonctl_local.postgres.account import ServerAccount, give

PROGRAM: Final = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
_CONFIGURATION: Final = """
[databases]
* = host={socket} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = plain
auth_file = {directory}/users
pool_mode = transaction
ignore_startup_parameters = extra_float_digits
default_pool_size = 20
server_reset_query_always = 1
logfile = {directory}/log
"""
"""Neon's settings. The reset makes the loss of state certain, as this pooler does."""


def version() -> tuple[int, int]:
    """Return the version of PgBouncer, (0, 0) without one."""
    if PROGRAM is None:
        return 0, 0
    output = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True)
    major, minor, *_ = output.stdout.split()[1].split(".")
    return int(major), int(minor)


@contextmanager
def running_pgbouncer(server: Server, account: ServerAccount | None) -> Generator[int]:
    """Run PgBouncer in front of a server, and return its port."""
    assert PROGRAM is not None
    with TemporaryDirectory() as folder:
        with socket.create_server(("127.0.0.1", 0)) as reserved:
            listen = reserved.getsockname()[1]
        directory = Path(folder)
        (directory / "users").write_text(f'"{ROLE}" "{PASSWORD}"\n', encoding="utf-8")
        port = server.socket.suffix.removeprefix(".")
        text = _CONFIGURATION.format(
            socket=server.socket.parent, port=port, listen=listen, directory=directory
        )
        (directory / "settings").write_text(text, encoding="utf-8")
        give(directory, account)
        process = subprocess.Popen(
            [PROGRAM, "-q", str(directory / "settings")],
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not _accepts(listen):
                time.sleep(0.01)
            yield listen
        finally:
            process.kill()
            process.wait()


def _accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
