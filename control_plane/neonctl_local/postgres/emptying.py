"""Removes all rows from a copy of a cluster, but keeps its roles, databases and schemas.

Restoring a dump of the schemas instead would create each object with the administrator's rights,
and so run users' code with these rights: for example, the check constraint of a domain that is used
in a partition bound.
"""

import os
import re
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Final

from neonctl_local.postgres.admin import AdminSession, roll_back_prepared
from neonctl_local.postgres.configuration import quote_name
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.files import open_directory

SETTINGS: Final = {
    "autovacuum": "off",  # it calls functions of indexes, with the rights of their owners
    "max_logical_replication_workers": "0",
    "wal_recycle": "off",
}
"""The settings of a server while its databases are emptied."""

_ROWS: Final = (
    resources.files("neonctl_local.postgres").joinpath("emptying.sql").read_text(encoding="utf-8")
)
_CATALOGS: Final = "pg_attribute, pg_largeobject, pg_statistic, pg_statistic_ext_data"
"""The catalogs that contain values from rows. Their pages keep deleted values until VACUUM FULL."""


@asynccontextmanager
async def open_databases(session: AdminSession) -> AsyncGenerator[dict[str, str]]:
    """Let the administrator connect to every database. Yield the owner of each database.

    Only template0 is left out, because nobody can have changed it. A database whose deletion was
    interrupted does not accept connections, and is dropped.
    """
    rows = await session.fetch(
        "SELECT datname, datallowconn, datconnlimit = -2 AS invalid,"
        " pg_get_userbyid(datdba) AS owner FROM pg_database"
        " WHERE datname <> 'template0' ORDER BY datname"
    )
    closed = [row["datname"] for row in rows if not (row["datallowconn"] or row["invalid"])]
    for row in rows:
        if row["invalid"]:
            await session.execute(f"DROP DATABASE {quote_name(row['datname'])}")
    for name in closed:
        await session.execute(f"ALTER DATABASE {quote_name(name)} ALLOW_CONNECTIONS true")
    try:
        yield {row["datname"]: row["owner"] for row in rows if not row["invalid"]}
    finally:
        for name in closed:
            await session.execute(f"ALTER DATABASE {quote_name(name)} ALLOW_CONNECTIONS false")


async def empty_database(session: AdminSession) -> list[str]:
    """Remove the rows of this session's database. Return the files that the database still needs.

    The paths are relative to the data directory. They name only the first file of each relation:
    further files have suffixes such as ``.1`` or ``_vm``.
    """
    await roll_back_prepared(session)
    await session.execute("SET session_replication_role = replica")  # without event triggers
    await session.execute(_ROWS)
    await session.execute(f"VACUUM (FULL) {_CATALOGS}")
    rows = await session.fetch(
        "SELECT format('base/%s/%s', d.oid, pg_relation_filenode(c.oid)) AS file"
        " FROM pg_class c CROSS JOIN pg_database d"
        " WHERE d.datname = current_database() AND pg_relation_filenode(c.oid) IS NOT NULL"
    )
    return [row["file"] for row in rows]


async def switch_wal(session: AdminSession) -> str:
    """Start a WAL segment without row values, and return its name."""
    await session.execute("SELECT pg_switch_wal()")
    await session.execute("CHECKPOINT")  # a start no longer needs earlier segments
    name: str = await session.fetchval("SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
    return name


def forget_rows(data: Path, needed: Collection[str], segment: str) -> None:
    """Remove the files of a stopped server that may still contain row values.

    These files are the statistics, the WAL before ``segment``, and the relations that aborted
    transactions left behind: the relations beside the ``needed`` files that are not ``needed``.
    """
    try:
        with open_directory(data / "base") as base:
            for name in {Path(file).parent.name for file in needed}:
                _remove(name, partial(_is_left_behind, f"base/{name}", needed), base)
        _remove(data / "pg_stat", lambda _name: True)
        _remove(data / "pg_wal", lambda name: name < segment and not name.endswith(".history"))
    except OSError as error:
        raise ClusterError(f"the rows in {str(data)!r} were not removed: {error}") from error


def _is_left_behind(directory: str, needed: Collection[str], name: str) -> bool:
    number = re.split(r"[._]", name, maxsplit=1)[0]
    return number.isdigit() and f"{directory}/{number}" not in needed


def _remove(
    path: str | Path, is_removed: Callable[[str], bool], directory: int | None = None
) -> None:
    """Remove files from a directory without following links.

    If ``directory`` is given, it is an open directory that ``path`` is relative to.
    """
    with open_directory(path, directory) as opened, os.scandir(opened) as entries:
        for entry in list(entries):
            if entry.is_file(follow_symlinks=False) and is_removed(entry.name):
                os.unlink(entry.name, dir_fd=opened)
