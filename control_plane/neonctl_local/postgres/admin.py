"""The administrator's sessions, in which the control plane runs its own SQL."""

import asyncio
import importlib
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol

import msgspec

from neonctl_local.postgres.configuration import (
    GROUP,
    Applied,
    Content,
    Desired,
    database_statements,
    group_statements,
    quote_name,
    quote_text,
    role_statements,
    rule_statements,
)
from neonctl_local.postgres.errors import ClusterBusyError, ClusterError, PostgresUnavailableError
from neonctl_local.postgres.settings import LOCK_TIME, session_settings
from neonctl_local.postgres.template import ADMINISTRATOR

STATEMENT_TIME: Final = 60.0
"""How long one of the administrator's statements may take, in seconds."""

_SESSION_NAME: Final = "neonctl-async"
_CONNECT_TIME: Final = 10.0
_RECOVERY_PAUSE: Final = 0.05
_SETTING_PAUSE: Final = 0.005
_RENAME_ATTEMPTS: Final = 5
_OF_POSTGRES: Final = ("postgres", "template0", "template1")
_RECENT: Final = 1000
_TERMINATE: Final = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1"
)


class Activity(msgspec.Struct, frozen=True):
    """The client activity on a running server, and the size of its data.

    ``busy`` is true if a client is running a query or has an open transaction. ``has_sql_changes``
    is true if clients changed roles or databases in SQL.
    """

    busy: bool
    last_active: datetime | None
    logical_size: int
    has_sql_changes: bool = False


class Address(msgspec.Struct, frozen=True):
    """The address of a running server: the directory of its socket, and its port."""

    directory: Path
    port: int

    @property
    def socket(self) -> Path:
        """The path of the socket."""
        return self.directory / f".s.PGSQL.{self.port}"


class AdminSession(Protocol):
    """The methods of an asyncpg connection that are used here. asyncpg does not publish types."""

    async def execute(self, query: str) -> str:
        """Run statements and return the status of the last one."""
        ...

    async def fetch(self, query: str, *args: object) -> Sequence[Mapping[str, Any]]:
        """Run a query and return its rows."""
        ...

    async def fetchval(self, query: str, *args: object) -> Any:  # noqa: ANN401 - SQL values have any type
        """Run a query and return the first value of its first row."""
        ...

    async def close(self, *, timeout: float) -> None:
        """Close the connection; ``timeout`` is in seconds."""
        ...

    def terminate(self) -> None:
        """Close the connection without notifying the server."""
        ...


def load_driver() -> ModuleType:
    """Import asyncpg, which publishes no types."""
    try:
        return importlib.import_module("asyncpg")
    except ImportError as error:
        raise PostgresUnavailableError(
            "real databases need the package 'asyncpg': pip install 'neonctl-local[postgres]'"
        ) from error


def own_settings(version: tuple[int, int]) -> dict[str, str]:
    """Return the settings of the administrator's sessions, including their application name."""
    return {**session_settings(version), "application_name": _SESSION_NAME}


@asynccontextmanager
async def connect(
    address: Address, password: str, version: tuple[int, int], database: str = "postgres"
) -> AsyncGenerator[AdminSession]:
    """Open an administrator session. Raise ClusterError if opening it or a statement fails.

    ``version`` is the major and the minor version of the server.
    """
    settings = own_settings(version)
    driver = load_driver()
    lost = driver.InternalClientError  # asyncpg raises it if the server is killed at certain times
    opening: AdminSession | None = None
    try:
        opening = session = await _open(driver, address, password, database, settings)
        yield session
        await session.close(timeout=_CONNECT_TIME)
    except driver.LockNotAvailableError as error:
        raise ClusterBusyError("the work of the administrator") from error
    except (driver.PostgresError, driver.InterfaceError, lost, OSError, TimeoutError) as error:
        text = str(error) or type(error).__name__
        raise ClusterError(f"Postgres refused the work of the administrator: {text}") from error
    finally:
        if opening is not None:
            opening.terminate()


async def _open(
    driver: ModuleType,
    address: Address,
    password: str,
    database: str,
    settings: Mapping[str, str],
) -> AdminSession:
    """Connect to a server, retrying while it recovers. Variables like ``PGHOST`` have no effect."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _CONNECT_TIME
    while True:
        try:
            session: AdminSession = await driver.connect(
                host=str(address.directory),
                port=address.port,
                user=ADMINISTRATOR,
                password=password,
                database=database,
                ssl=False,
                timeout=_CONNECT_TIME,
                command_timeout=STATEMENT_TIME,
                statement_cache_size=0,
                server_settings=settings,
                target_session_attrs="any",
            )
        except driver.CannotConnectNowError:
            # Postgres recovers for a moment after one of its processes was killed.
            if loop.time() >= deadline:
                raise
            await asyncio.sleep(_RECOVERY_PAUSE)
        else:
            return session


async def apply_roles_and_databases(
    session: AdminSession, desired: Desired, applied: Applied, major: int
) -> None:
    """Create and change roles and databases to match ``desired``, but do not drop any."""
    await _execute(session, rule_statements(major))
    roles = await _names(session, "SELECT rolname FROM pg_roles")
    after = await asyncio.to_thread(applied.after, desired)
    if GROUP not in roles:
        await _execute(session, group_statements(major))
    databases = await _owners(session)
    for old, new in desired.renamed.items():
        if old in databases and new not in databases:
            await _rename_database(session, old, new)
            databases[new] = databases.pop(old)
    await _execute(session, role_statements(desired, applied, after, roles, major))
    databases = await _owners(session)
    await _execute(session, database_statements(desired, applied, databases))


async def read_content(session: AdminSession) -> Content:
    """Return the roles and databases of a cluster, except for those that every cluster contains."""
    roles = await session.fetch(
        "SELECT rolname, CASE WHEN rolcanlogin THEN coalesce(rolpassword, '') END AS verifier"
        " FROM pg_authid WHERE rolname !~ '^pg_' AND rolname <> ALL($1)",
        [ADMINISTRATOR, GROUP],
    )
    databases = await _owners(session)
    return Content(
        {row["rolname"]: row["verifier"] for row in roles},
        {name: owner for name, owner in databases.items() if name not in _OF_POSTGRES},
    )


async def open_for_drop(session: AdminSession, database: str) -> bool:
    """Prepare a database to be dropped: it stops being a template, and accepts connections.

    Prepared transactions and subscriptions in the database can still prevent the drop. Return
    False, and change nothing, if an earlier drop was interrupted, because nobody can connect to
    such a database.
    """
    is_valid: bool = await session.fetchval(
        "SELECT datconnlimit <> -2 FROM pg_database WHERE datname = $1", database
    )
    if is_valid:
        name = quote_name(database)
        await session.execute(f"ALTER DATABASE {name} IS_TEMPLATE false ALLOW_CONNECTIONS true")
    return is_valid


async def drop_database(session: AdminSession, database: str) -> None:
    """End the sessions of a database, including replication sessions, and drop the database."""
    await session.fetch(_TERMINATE, database)
    await session.execute(f"DROP DATABASE {quote_name(database)} WITH (FORCE)")


async def roll_back_prepared(session: AdminSession) -> None:
    """Roll back the prepared transactions in this session's database."""
    for row in await session.fetch(
        "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
    ):
        await session.execute(f"ROLLBACK PREPARED {quote_text(row['gid'])}")


async def disown(session: AdminSession, role: str, owner: str) -> None:
    """Reassign the objects that ``role`` owns in this session's database to ``owner``.

    If ``owner`` is the administrator, drop the objects instead, because a function that runs with
    its owner's rights would get the administrator's rights. The privileges of ``role`` are revoked.
    """
    name = quote_name(role)
    if owner != ADMINISTRATOR:
        await session.execute(f"REASSIGN OWNED BY {name} TO {quote_name(owner)}")
    await session.execute(f"DROP OWNED BY {name}")


async def connectable_databases(session: AdminSession) -> list[str]:
    """Return the databases that accept connections, except for templates.

    Databases whose deletion was interrupted do not accept connections.
    """
    rows = await session.fetch(
        "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate"
        " AND datconnlimit <> -2 ORDER BY datname"
    )
    return [row["datname"] for row in rows]


async def subscribed_databases(session: AdminSession) -> list[str]:
    """Return the databases that have subscriptions."""
    rows = await session.fetch(
        "SELECT DISTINCT datname FROM pg_subscription JOIN pg_database d ON d.oid = subdbid"
    )
    return [row["datname"] for row in rows]


async def drop_subscriptions(session: AdminSession) -> None:
    """Drop the subscriptions of this session's database. The publishers' slots are not dropped."""
    rows = await session.fetch(
        "SELECT subname FROM pg_subscription JOIN pg_database d ON d.oid = subdbid"
        " WHERE datname = current_database()"
    )
    for row in rows:
        name = quote_name(row["subname"])
        await session.execute(f"ALTER SUBSCRIPTION {name} DISABLE")
        await session.execute(f"ALTER SUBSCRIPTION {name} SET (slot_name = NONE)")
        await session.execute(f"DROP SUBSCRIPTION {name}")


async def reload_settings(session: AdminSession, changed: Iterable[str]) -> bool:
    """Reload the configuration files. Return whether a setting in ``changed`` needs a restart.

    Raise ClusterError if Postgres refuses a value. Settings that need a restart are only checked at
    the restart.
    """
    names = [name.lower() for name in changed]
    await session.execute("SELECT pg_reload_conf()")
    restart = await _names(
        session,
        "SELECT lower(name) FROM pg_settings"
        " WHERE context = 'postmaster' AND lower(name) = ANY($1)",
        names,
    )
    rows = await session.fetch(
        "SELECT name, setting, error FROM pg_file_settings"
        " WHERE error IS NOT NULL AND lower(name) = ANY($1)",
        names,
    )
    for row in rows:
        if row["name"].lower() not in restart:
            raise ClusterError(
                f"Postgres refused the setting {row['name']} = {row['setting']!r}: {row['error']}"
            )
    return bool(restart)


async def end_blocked_dump(session: AdminSession, name: str) -> bool:
    """End the session of pg_dump with this application name if it has waited too long for a lock.

    Return whether it had. Nothing else ends such a session, because Postgres does not notice that a
    waiting client has disconnected.
    """
    ended: int = await session.fetchval(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE usename = $1 AND application_name = $2 AND pid IN"
        f" (SELECT pid FROM pg_locks WHERE waitstart < clock_timestamp() - interval '{LOCK_TIME}')",
        ADMINISTRATOR,
        name,
    )
    return ended > 0


async def await_setting(session: AdminSession, name: str, value: str) -> None:
    """Reload the configuration files, and wait until a setting has this value."""
    await session.execute("SELECT pg_reload_conf()")
    async with asyncio.timeout(STATEMENT_TIME):
        query = "SELECT setting FROM pg_settings WHERE name = $1"
        while await session.fetchval(query, name) != value:  # noqa: ASYNC110 - Postgres has no event for it
            await asyncio.sleep(_SETTING_PAUSE)


async def begin_backup(session: AdminSession) -> str:
    """Start backup mode, and return the name of the first WAL segment that the copy needs.

    Backup mode lasts until :func:`end_backup` is called or the session ends. The caller must make
    the server keep the segments until they are copied.
    """
    version = await session.fetchval("SELECT current_setting('server_version_num')::integer")
    old = version < 150000
    function = "pg_start_backup" if old else "pg_backup_start"
    arguments = "'copy', true, false" if old else "'copy', true"
    segment: str = await session.fetchval(f"SELECT pg_walfile_name({function}({arguments}))")
    return segment


async def end_backup(session: AdminSession) -> tuple[str, str, str]:
    """End backup mode. Return the final LSN, the last WAL segment's name, and the backup label."""
    version = await session.fetchval("SELECT current_setting('server_version_num')::integer")
    call = "pg_stop_backup(false, false)" if version < 150000 else "pg_backup_stop(false)"
    [row] = await session.fetch(
        f"SELECT lsn::text, pg_walfile_name(lsn) AS last, labelfile FROM {call}"
    )
    return row["lsn"], row["last"], row["labelfile"]


async def write_mark(session: AdminSession) -> str:
    """Commit an empty transaction, so that a recovery to any earlier time has a commit to stop at.

    Return the name of the current WAL segment once the transaction is written to disk.
    """
    await session.execute(
        "BEGIN; SET LOCAL synchronous_commit = 'local';"
        " SELECT pg_logical_emit_message(true, 'neonctl', ''); COMMIT"
    )
    segment: str = await session.fetchval("SELECT pg_walfile_name(pg_current_wal_flush_lsn())")
    return segment


async def current_lsn(session: AdminSession) -> str:
    """Return the LSN of the end of the WAL."""
    lsn: str = await session.fetchval("SELECT pg_current_wal_insert_lsn()::text")
    return lsn


async def count_sessions(session: AdminSession) -> int:
    """Return the number of sessions that have been opened in the clients' databases so far.

    Sessions in the database ``postgres``, where the administrator usually works, do not count.
    """
    count: int = await session.fetchval(
        "SELECT coalesce(sum(s.sessions), 0)::bigint FROM pg_stat_database s"
        " JOIN pg_database d ON d.oid = s.datid"
        " WHERE d.datname <> 'postgres' AND NOT d.datistemplate"
    )
    return count


async def read_activity(session: AdminSession) -> Activity:
    """Return the connected clients' activity and the size of all databases."""
    [row] = await session.fetch(
        "SELECT coalesce(bool_or(state <> 'idle' OR xact_start IS NOT NULL), false) AS busy,"
        " max(greatest(backend_start, query_start, state_change)) AS last_active,"
        " (SELECT coalesce(sum(pg_database_size(oid)), 0)::bigint FROM pg_database"
        "  WHERE datallowconn AND NOT datistemplate) AS logical_size"
        " FROM pg_stat_activity WHERE backend_type IN ('client backend', 'walsender')"
        " AND NOT (usename = $1 AND application_name = $2)",
        ADMINISTRATOR,
        _SESSION_NAME,
    )
    return Activity(row["busy"], row["last_active"], row["logical_size"])


async def last_commit(session: AdminSession) -> datetime | None:
    """Return the time of the last commit, or None if it is unknown.

    After a restart, ``pg_last_committed_xact`` is empty, so the stored times of the last 1,000
    transactions are searched instead.
    """
    time: datetime | None = await session.fetchval(
        "SELECT coalesce((pg_last_committed_xact()).timestamp, (SELECT"
        " max(pg_xact_commit_timestamp((x % 4294967296)::text::xid)) FROM (SELECT"
        " pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next) AS current,"
        f" generate_series(greatest(next - {_RECENT}, 3), next - 1) AS x))"
    )
    return time


async def oldest_transaction(session: AdminSession) -> int:
    """Return the lowest number of the transactions that can still commit, modulo 2 ** 32.

    If no transaction is running, that is the number of the next one.
    """
    oldest: int = await session.fetchval(
        "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint % 4294967296"
    )
    return oldest


async def _execute(session: AdminSession, statements: Iterable[str]) -> None:
    for statement in statements:
        await session.execute(statement)


async def _names(session: AdminSession, query: str, *parameters: object) -> frozenset[str]:
    return frozenset([next(iter(row.values())) for row in await session.fetch(query, *parameters)])


async def _owners(session: AdminSession) -> dict[str, str]:
    rows = await session.fetch("SELECT datname, pg_get_userbyid(datdba) AS owner FROM pg_database")
    return {row["datname"]: row["owner"] for row in rows}


async def _rename_database(session: AdminSession, old: str, new: str) -> None:
    """Rename a database. Its sessions are terminated first, as Postgres requires."""
    in_use = load_driver().ObjectInUseError
    for attempt in range(1, _RENAME_ATTEMPTS + 1):
        await session.fetch(_TERMINATE, old)
        try:
            await session.execute(f"ALTER DATABASE {quote_name(old)} RENAME TO {quote_name(new)}")
        except in_use:
            if attempt == _RENAME_ATTEMPTS:
                raise
        else:
            return
