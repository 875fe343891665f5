"""What a server checks at a login: read from a running server, or recorded when it stopped."""

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec

from neonctl_local.postgres import admin
from neonctl_local.postgres.client import messages
from neonctl_local.postgres.client.session import StatementError, WireSession, startup_message
from neonctl_local.postgres.configuration import (
    Applied,
    Desired,
    is_verifier,
    make_verifier,
    verifies,
)
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.files import read_file
from neonctl_local.postgres.stopped import PAGE, stopped_cleanly
from neonctl_local.postgres.template import ADMINISTRATOR

IDLE_SECONDS: Final = 1.0
"""How long an unused session stays open and may hold its lock, in seconds."""

_OPENING_SECONDS: Final = 10.0
_NAME: Final = b"login"
_LSN: Final = struct.Struct("=II")
"""The first field of a page: the WAL position after the page's latest change."""

_ROLES: Final = """
    SELECT rolname, rolpassword, CASE WHEN isfinite(rolvaliduntil)
        THEN extract(epoch FROM rolvaliduntil)::float8
        WHEN rolvaliduntil = '-infinity' THEN 0 END AS valid_until
    FROM pg_authid WHERE rolname <> $1"""

_POSITION: Final = """
    SELECT pg_relation_filepath('pg_authid') AS file,
        (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::text AS lsn"""

# The limits count existing sessions, so an existing session may continue even at a limit.
# The last column is true if the other columns can only change when the locked tables change.
_LOGIN: Final = """
    SELECT r.oid,
        CASE WHEN coalesce(rolvaliduntil >= clock_timestamp(), true) THEN rolpassword END,
        rolcanlogin AND coalesce(datallowconn, false)
            AND coalesce(has_database_privilege(r.oid, d.oid, 'CONNECT'), false)
            AND (rolsuper OR (
                CASE WHEN rolconnlimit < 0 THEN true ELSE rolconnlimit >=
                    (SELECT count(*) FROM pg_stat_activity WHERE usesysid = r.oid) END
                AND CASE WHEN datconnlimit = -1 THEN true ELSE datconnlimit >=
                    (SELECT count(*) FROM pg_stat_activity s WHERE s.datid = d.oid) END
            )),
        rolvaliduntil IS NULL AND rolconnlimit < 0 AND datconnlimit = -1
    FROM pg_authid r LEFT JOIN pg_database d ON d.datname = $2 WHERE r.rolname = $1"""

_LOCK: Final = "BEGIN; LOCK TABLE pg_authid, pg_auth_members, pg_database IN SHARE MODE NOWAIT"
_UNLOCK: Final = "ROLLBACK"
_WAITING: Final = """
    SELECT FROM pg_locks WHERE NOT granted AND database = 0
        AND relation IN ('pg_authid'::regclass, 'pg_auth_members'::regclass,
            'pg_database'::regclass)"""
LOOK_SECONDS: Final = 0.05
"""The time between checks for a change that is waiting for the lock, in seconds.

Without the lock, each login would need a query, and ``SELECT 1`` over HTTP would take 1.2 ms
instead of 0.7 ms.
"""
_UNLOCKED_SECONDS: Final = 0.2
"""How long the tables stay unlocked after a change, so that its transaction can continue."""


class ServerLogin(NamedTuple):
    """What a running server checks when a role logs in to a database.

    - ``id``: the OID of the role. A later role with the same name has another OID.
    - ``verifier``: the stored form of the password. None if the role has no password, or if the
      password has expired.
    - ``may_connect``: false if the server refuses the role, or the role in this database.
    """

    id: int
    verifier: str | None
    may_connect: bool

    def __repr__(self) -> str:
        return f"<ServerLogin of role {self.id}>"


class StoredPassword(msgspec.Struct, frozen=True):
    """The verifier of a role's password, and the time until which it is valid, in Unix seconds."""

    verifier: str | None
    valid_until: float | None = None

    def __repr__(self) -> str:
        return "<StoredPassword>"


class Password(NamedTuple):
    """The password that a compute accepts for a role after its next start.

    ``verifier`` is None if no password is accepted. ``text`` is the password itself, if the start
    stores a new verifier for it.
    """

    verifier: str | None
    text: str | None = None

    def __repr__(self) -> str:
        return "<Password>"


class StoredPasswords(msgspec.Struct, frozen=True):
    """The passwords of a server that is about to stop.

    ``file`` is the file of the table ``pg_authid``, and ``lsn`` is the end of the WAL.
    """

    roles: dict[str, StoredPassword]
    file: str
    lsn: int

    def are_those_of(self, data: Path) -> bool:
        """Return whether the server stopped cleanly, and these passwords are still current."""
        if not stopped_cleanly(data):
            return False
        pages = read_file(data / self.file)
        positions = (_LSN.unpack_from(pages, start) for start in range(0, len(pages), PAGE))
        return all(high << 32 | low <= self.lsn for high, low in positions)


async def read_passwords(session: admin.AdminSession) -> StoredPasswords:
    """Return the passwords of all roles except the administrator's, and the end of the WAL.

    Raise ClusterError if a transaction is changing roles, because it could commit later without
    changing the table's pages.
    """
    await session.execute("BEGIN; LOCK TABLE pg_authid IN SHARE MODE NOWAIT")
    rows = await session.fetch(_ROLES, ADMINISTRATOR)
    [position] = await session.fetch(_POSITION)
    await session.execute("ROLLBACK")
    roles = {row["rolname"]: StoredPassword(row["rolpassword"], row["valid_until"]) for row in rows}
    return StoredPasswords(roles, position["file"], int(position["lsn"]))


def password_at_start(
    role: str, stored: Mapping[str, StoredPassword], applied: Applied, desired: Desired
) -> Password:
    """Return the password that a stopped server will accept once a start has applied ``desired``.

    The result follows the rules of :func:`role_statements`. The call takes milliseconds.
    """
    spec = next((each for each in desired.roles if each.name == role), None)
    known = stored.get(role)
    if (known is None or spec is None) and role in applied.roles:
        return Password(None)  # dropped with SQL, or with the API
    if spec is None or (role in applied.roles and verifies(applied.roles[role], spec.password)):
        return _unless_expired(known, Password(known.verifier if known else None))
    password = spec.password
    text = None if password is None or is_verifier(password) else password
    return _unless_expired(known, Password(make_verifier(password), text))


def _unless_expired(known: StoredPassword | None, password: Password) -> Password:
    """Return ``password``, or ``Password(None)`` if the role's password has expired.

    A new password keeps the expiry of the old password.
    """
    end = None if known is None else known.valid_until
    return Password(None) if end is not None and end < time.time() else password


OpenSession: TypeAlias = Callable[[], Awaitable[WireSession]]
_Key: TypeAlias = tuple[str, str]
_Row: TypeAlias = Sequence[bytes | None]
_Found: TypeAlias = Mapping[_Key, ServerLogin | None]


class LoginQueries:
    """Queries a running server about logins, in one administrator session.

    The session stays open while it is used. It locks the tables that a login depends on, so results
    stay valid until a change waits for the lock. Then the lock is released, and the results are
    forgotten. Requests that arrive during a query share the next query, because the running one may
    have read earlier data.
    """

    def __init__(self, open_session: OpenSession) -> None:
        self._open_session = open_session
        self._session: WireSession | None = None
        self._known: dict[_Key, ServerLogin] | None = None
        """The results since the tables were locked; None if the tables are not locked."""
        self._unlocked_until = 0.0
        self._watching: asyncio.Task[None] | None = None
        self._waiting: dict[_Key, None] = {}
        """The queries that the next task will send."""
        self._next: asyncio.Task[_Found] | None = None
        """The task that will send the waiting queries."""
        self._asking = asyncio.Lock()
        self._used_at = 0.0

    async def find(self, role: str, database: str) -> ServerLogin | None:
        """Return what the server checks when a role logs in, or None if the role does not exist.

        Raise ClusterError if the server does not respond.
        """
        key = (role, database)
        self._used_at = asyncio.get_running_loop().time()
        if self._known is not None and key in self._known:
            return self._known[key]
        self._waiting[key] = None
        if self._next is None:
            self._next = asyncio.create_task(self._ask())
            self._next.add_done_callback(_retrieve)
        # Cancelling one caller does not cancel the query of the other callers.
        return (await asyncio.shield(self._next))[key]

    def forget(self) -> None:
        """Close the session at once, and forget the results."""
        self._known = None
        if self._session is not None:
            self._session.abort()
            self._session = None

    async def close(self) -> None:
        """Close the session, and wait until the interrupted queries have ended."""
        self.forget()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        if self._next is not None:
            await asyncio.wait([self._next])
        async with self._asking:
            self.forget()

    async def _ask(self) -> _Found:
        async with self._asking:
            keys, self._waiting, self._next = list(self._waiting), {}, None
            try:
                if self._session is not None:
                    try:
                        return await self._answer(self._session, keys)
                    except (StatementError, OSError, EOFError):
                        self.forget()  # the server has restarted, or ended the session
                session = self._session = await self._open_session()
                await session.send(messages.parse(_NAME, _LOGIN) + messages.SYNC)
                await _rows(session)
                self._start_watching()
                return await self._answer(session, keys)
            except (StatementError, OSError, EOFError) as error:
                self.forget()
                raise ClusterError(f"Postgres did not look up a login: {error}") from error
            except BaseException:
                self.forget()
                raise

    async def _answer(self, session: WireSession, keys: Sequence[_Key]) -> _Found:
        loop = asyncio.get_running_loop()
        if self._known is None and loop.time() >= self._unlocked_until:
            try:
                await _run(session, _LOCK)
                self._known = {}
            except StatementError:  # a transaction with changes is open
                await _run(session, _UNLOCK)
                self._unlocked_until = loop.time() + _UNLOCKED_SECONDS
        values = [[part.encode() for part in key] for key in keys]
        await session.send(b"".join(messages.run(_NAME, each) for each in values) + messages.SYNC)
        found: dict[_Key, ServerLogin | None] = {}
        for key, row in zip(keys, await _rows(session), strict=True):
            found[key] = login = None if row is None else _login(row)
            if (
                login is not None
                and row is not None
                and row[-1] == b"t"
                and self._known is not None
            ):
                self._known[key] = login
        return found

    def _start_watching(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        """Release the lock when a change is waiting for it, and close an unused session."""
        loop = asyncio.get_running_loop()
        while self._session is not None:
            await asyncio.sleep(LOOK_SECONDS)
            async with self._asking:
                if loop.time() - self._used_at > IDLE_SECONDS:
                    self.forget()
                elif self._known is not None:
                    await self._look()

    async def _look(self) -> None:
        assert self._session is not None, "what is known was read in it"
        try:
            if await _run(self._session, _WAITING):
                self._known = None  # before the change can be committed
                self._unlocked_until = asyncio.get_running_loop().time() + _UNLOCKED_SECONDS
                await _run(self._session, _UNLOCK)
        except (StatementError, OSError, EOFError):
            self.forget()


async def _run(session: WireSession, sql: str) -> list[_Row]:
    """Run statements, and return the last row of each one that returns rows."""
    await session.send(messages.query(sql))
    return [row for row in await _rows(session) if row is not None]


def _retrieve(task: asyncio.Task[_Found]) -> None:
    """Retrieve the error of a query, so asyncio does not log it if all callers were cancelled."""
    if not task.cancelled():
        task.exception()


async def open_session(
    address: admin.Address, password: str, version: tuple[int, int]
) -> WireSession:
    """Open an administrator session.

    Raise StatementError, OSError or EOFError if this fails.
    """
    parameters = {"user": ADMINISTRATOR, "database": "postgres", "client_encoding": "UTF8"}
    async with asyncio.timeout(_OPENING_SECONDS):
        session = WireSession(*await asyncio.open_unix_connection(str(address.socket)))
        try:
            await session.send(startup_message(parameters | admin.own_settings(version)).encode())
            await session.log_in(password)
        except BaseException:
            session.abort()
            raise
    return session


def _login(row: _Row) -> ServerLogin:
    id, verifier, may_connect, _ = row
    return ServerLogin(
        int(id or 0), None if verifier is None else verifier.decode(), may_connect == b"t"
    )


async def _rows(session: WireSession) -> list[_Row | None]:
    """Return the last row of each statement, or None for a statement without rows."""
    rows: list[_Row | None] = []
    row: _Row | None = None
    error: StatementError | None = None
    while True:
        kind, length = await session.header()
        payload = await session.payload(length)
        if kind == b"D":
            row = messages.decode_row(payload)
        elif kind == b"C":
            rows.append(row)
            row = None
        elif kind == b"E":
            error = StatementError(messages.decode_message(payload))
            if error.is_last:
                raise error
        elif kind == b"Z":
            if error is not None:
                raise error
            return rows
