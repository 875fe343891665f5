"""A Postgres server on a data directory, without the code that manages clusters."""

import asyncio
import shutil
import signal
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.admin import load_driver
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.copying import copy_cluster
from neonctl_local.postgres.programs import program_environment
from neonctl_local.postgres.template import ADMINISTRATOR, password_file

SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "shared_buffers": "8MB",
    "max_connections": "10",
    "log_min_messages": "fatal",
}


Connection: TypeAlias = Any
"""A connection of asyncpg, which publishes no types."""


async def connect(directory: Path) -> Connection:
    """Connect as the administrator. Wait until the server accepts connections."""
    asyncpg = load_driver()
    password = await asyncio.to_thread(password_file(directory).read_text, encoding="utf-8")
    while True:
        try:
            return await asyncpg.connect(
                host=str(directory), user=ADMINISTRATOR, password=password, database="postgres"
            )
        except (OSError, asyncpg.CannotConnectNowError):
            await asyncio.sleep(0.01)


def copy_with_password(
    source: Path,
    target: Path,
    *,
    account: ServerAccount | None,
    wal: Sequence[str] | None = None,
) -> None:
    """Copy a data directory, and the password of its administrator."""
    copy_cluster(source, target, account=account, wal=wal)
    shutil.copyfile(password_file(source), password_file(target))


@asynccontextmanager
async def running(
    installation: Installation, directory: Path, account: ServerAccount | None
) -> AsyncGenerator[Connection, None]:
    """Run a server, and yield a connection of the administrator. Stop the server at the end."""
    settings = SETTINGS | {"unix_socket_directories": str(directory)}
    process = await asyncio.create_subprocess_exec(
        installation.program("postgres"),
        *("-D", directory),
        *(f"--{name}={value}" for name, value in settings.items()),
        stdin=subprocess.DEVNULL,
        env=program_environment(),
        start_new_session=True,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
    try:
        connection = await asyncio.wait_for(connect(directory), 15)
        try:
            yield connection
        finally:
            connection.terminate()
    finally:
        process.send_signal(signal.SIGINT)  # a fast shutdown
        assert await process.wait() == 0
