"""Copies of data directories, on which servers run."""

import asyncio
from pathlib import Path

import pytest

from control_plane.tests.postgres.server import Connection, connect, copy_with_password, running
from neonctl_local.postgres.account import ServerAccount, give
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.copying import copy_wal
from neonctl_local.postgres.template import Template

pytestmark = pytest.mark.postgres

BALANCE = "SELECT sum(amount) FROM accounts"


@pytest.fixture
async def parent(open_directory: Path, template: Template, account: ServerAccount | None) -> Path:
    """A copy of the template."""
    parent = open_directory / "parent"
    await asyncio.to_thread(copy_with_password, template.directory, parent, account=account)
    return parent


async def test_copies_of_a_stopped_server_differ_independently(
    installation: Installation, parent: Path, account: ServerAccount | None
) -> None:
    async with running(installation, parent, account) as connection:
        await connection.execute("CREATE TABLE names AS SELECT 'parent' AS name")
        await connection.execute("CREATE UNLOGGED TABLE fast AS SELECT 1")
        await connection.execute("CREATE DATABASE other")
    child = parent.with_name("child")
    await asyncio.to_thread(copy_with_password, parent, child, account=account)
    async with running(installation, child, account) as connection:
        assert await connection.fetchval("SELECT name FROM names") == "parent"
        assert await connection.fetchval("SELECT count(*) FROM fast") == 1
        await connection.execute("UPDATE names SET name = 'child'")
        await connection.execute("DROP DATABASE other")
    async with running(installation, parent, account) as connection:
        assert await connection.fetchval("SELECT name FROM names") == "parent"
        assert await connection.fetchval("SELECT count(*) FROM pg_database") == 4


async def transfer(connection: Connection, stop: asyncio.Event) -> None:
    """Move amounts between accounts, and replace tables, until the event."""
    number = 0
    while not stop.is_set():
        number += 1
        async with connection.transaction():
            await connection.execute("UPDATE accounts SET amount = amount - 1 WHERE id = 1")
            await connection.execute(
                "UPDATE accounts SET amount = amount + 1 WHERE id = $1", 2 + number % 999
            )
        await connection.execute("DROP TABLE IF EXISTS short_lived")
        await connection.execute("CREATE TABLE short_lived AS SELECT generate_series(1, 100)")


def names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def copy_running(
    connection: Connection, source: Path, target: Path, account: ServerAccount | None
) -> None:
    """Copy a data directory in backup mode, as the manual of Postgres describes."""
    begin = await connection.fetchval("SELECT pg_walfile_name(pg_backup_start('copy', true))")
    await asyncio.to_thread(copy_with_password, source, target, account=account, wal=[])
    end, label = await connection.fetchrow(
        "SELECT pg_walfile_name(lsn), labelfile FROM pg_backup_stop(false)"
    )
    segments = await asyncio.to_thread(names, source / "pg_wal")
    needed = [name for name in segments if begin <= name <= end]
    await asyncio.to_thread(copy_wal, source, target, needed, account=account)
    await asyncio.to_thread((target / "backup_label").write_text, label)
    await asyncio.to_thread(give, target / "backup_label", account)


async def test_copies_of_a_running_server_are_consistent(
    installation: Installation, parent: Path, account: ServerAccount | None
) -> None:
    copies = [parent.with_name(f"copy-{number}") for number in range(2)]
    async with running(installation, parent, account) as connection:
        await connection.execute("CREATE TABLE accounts (id int PRIMARY KEY, amount int)")
        await connection.execute(
            "INSERT INTO accounts SELECT n, 10 FROM generate_series(1, 1000) n"
        )
        await connection.execute("CREATE UNLOGGED TABLE fast AS SELECT 1")
        writer, stop = await connect(parent), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(transfer(writer, stop))
            for copy in copies:
                await copy_running(connection, parent, copy, account)
            stop.set()
        writer.terminate()
    for copy in copies:
        async with running(installation, copy, account) as connection:
            assert await connection.fetchval(BALANCE) == 10_000
            assert await connection.fetchval("SELECT amount FROM accounts WHERE id = 1") < 10
            assert await connection.fetchval("SELECT count(*) FROM fast") == 0
            await connection.execute("VACUUM FULL accounts")
            await connection.execute("REINDEX SYSTEM postgres")
