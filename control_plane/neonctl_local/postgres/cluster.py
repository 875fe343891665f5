"""One cluster: a data directory and its server."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from neonctl_local.postgres import emptying
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.admin import (
    Activity,
    Address,
    AdminSession,
    apply_roles_and_databases,
    await_setting,
    begin_backup,
    connect,
    connectable_databases,
    count_sessions,
    disown,
    drop_database,
    drop_subscriptions,
    end_backup,
    last_commit,
    oldest_transaction,
    open_for_drop,
    read_activity,
    read_content,
    reload_settings,
    roll_back_prepared,
    subscribed_databases,
)
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.client import session as client
from neonctl_local.postgres.configuration import (
    DATABASE,
    Applied,
    Desired,
    SqlChanges,
    quote_name,
    render_settings,
)
from neonctl_local.postgres.copying import copy_cluster, copy_wal, disk_usage, remove
from neonctl_local.postgres.emptying import (
    empty_database,
    forget_rows,
    open_databases,
    switch_wal,
)
from neonctl_local.postgres.errors import MORE_SPACE, ClusterError, DiskFullError, says_full
from neonctl_local.postgres.files import open_directory, read_file, write_file
from neonctl_local.postgres.history.archive import (
    COPIED,
    History,
    copied_at,
    history_of,
    recovered_to,
)
from neonctl_local.postgres.logins import (
    LoginQueries,
    Password,
    ServerLogin,
    StoredPasswords,
    open_session,
    password_at_start,
    read_passwords,
)
from neonctl_local.postgres.restoring import RestorableCopy
from neonctl_local.postgres.servers.extensions import TrustedExtensions
from neonctl_local.postgres.servers.guardian import end_servers
from neonctl_local.postgres.servers.interrupted import forget_label, put_label_back
from neonctl_local.postgres.servers.postmaster import Postmaster, options
from neonctl_local.postgres.servers.scheduling import complete, in_thread, logger
from neonctl_local.postgres.settings import server_refusal, session_options
from neonctl_local.postgres.stopped import newest_commit, stopped_cleanly
from neonctl_local.postgres.template import ADMINISTRATOR, password_file

APPLIED: Final = "neonctl_applied.json"
CHANGED: Final = "neonctl_changed_at"
PASSWORDS: Final = "neonctl_passwords.json"
"""The file with the roles' password verifiers, kept from a clean stop until the next start."""

SESSIONS: Final = 3
"""How many sessions the administrator may open. Postgres reserves connections for them."""

SETTINGS: Final = "postgresql.auto.conf"
STATISTICS: Final = "pg_stat"
"""The directory in which a server stores its activity statistics when it stops."""
SUBSCRIPTIONS: Final = "6100"
"""The name of the file that holds the catalog pg_subscription."""

_ALL_WAL: Final = "2147483647"
"""The largest ``wal_keep_size``, in megabytes."""

_RECOVERY: Final = {
    "hot_standby": "off",
    "recovery_target_action": "promote",
    "recovery_target_timeline": "current",
    "restore_command": "false",  # the directory contains the WAL, but Postgres requires a command
}


class Machine(msgspec.Struct, frozen=True):
    """The installations, paths and options that all clusters of a control plane share."""

    installations: Mapping[int, Installation]
    account: ServerAccount | None
    sockets: Path
    durable: bool
    extensions: TrustedExtensions
    history: bool = False
    """True if clusters keep their WAL, for recoveries to any point in time."""
    ports: set[int] = set()
    """The port numbers of the running servers. They only distinguish sockets."""

    def new_address(self) -> Address:
        """Return an address that no server uses. After use, remove its port from ``ports``."""
        port = next(number for number in range(1, 65536) if number not in self.ports)
        self.ports.add(port)
        return Address(self.sockets, port)

    def installation(self, data: Path) -> Installation:
        """Return the installation for the version of a data directory."""
        try:
            major = int(read_file(data / "PG_VERSION"))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a number"
            raise ClusterError(f"the version of {str(data)!r} is unknown: {reason}") from None
        if major not in self.installations:
            found = ", ".join(map(str, self.installations))
            raise ClusterError(
                f"The data are of Postgres {major}, which is not installed: found {found}"
            )
        return self.installations[major]


def default_settings(major: int, *, durable: bool) -> dict[str, str]:
    """Return Neon's settings, and settings that save memory, disk space and time.

    A project may override them. ``max_connections`` is that of the smallest compute.
    Autovacuum is off unless the data is durable, because it could change data at any time.
    """
    settings = {
        "shared_buffers": "16MB",
        "max_connections": "104",
        "autovacuum": "on" if durable else "off",
        "min_wal_size": "2MB",
        "max_wal_size": "128MB",
        "jit": "off",
        "timezone": "GMT",
        "idle_in_transaction_session_timeout": "5min",
    }
    if sys.platform == "linux":  # elsewhere, some versions only start with the value 0
        settings["client_connection_check_interval"] = "1min"
    if major >= 18:
        settings["io_method"] = "sync"
    return settings


class Cluster:
    """A data directory and its server.

    The caller ensures that calls do not overlap, except for copies and reads of a running server.
    ``on_crash`` is called with the reason if the server ends without having been stopped.
    """

    def __init__(self, data: Path, machine: Machine) -> None:
        self.data = data
        self.on_crash: Callable[[str], None] = lambda _reason: None
        self.history: History | None = None
        if machine.history:
            self.history = History(data, machine.account, durable=machine.durable)
        self._machine = machine
        self._address: Address | None = None
        self._postmaster: Postmaster | None = None
        self._changed: datetime | None = None
        self._client_sessions: int | None = None
        self._files: RestorableCopy | None = None
        self._wal_keepers = 0
        """The number of copies of the running server that are being made."""
        self._wal_keeping = asyncio.Lock()
        self._settings_before: str | None = None
        """The text of the settings file before the first of the copies in progress began; None if
        no copy of the running server is being made."""
        self._sessions = asyncio.Semaphore(SESSIONS)
        self._logins = LoginQueries(self._open_for_logins)

    @property
    def running(self) -> bool:
        """True if the server accepts connections."""
        return self._postmaster is not None and self._address is not None

    @property
    def socket(self) -> Path | None:
        """The socket of the server, or None if the server is not running."""
        return self._address.socket if self._address and self.running else None

    @asynccontextmanager
    async def session(self, database: str = "postgres") -> AsyncGenerator[AdminSession]:
        """Open an administrator session on the running server."""
        # The server may end, and release its address, while the password is being read.
        address = self._address
        if address is None or not self.running:
            raise ClusterError("The Postgres server is not running")
        password, version = await in_thread(self._login)
        async with self._sessions, connect(address, password, version, database) as session:
            yield session

    async def warm(self) -> None:
        """Make Postgres cache the catalogs of each database, so that no client waits for this.

        Call this after each start of a copy, before a client connects.
        """
        assert self._files is not None, "record_files() was called"
        if await in_thread(self._files.put_caches_back):
            return
        async with self.session() as session:
            names = await connectable_databases(session)
        for name in names:
            if name != "postgres":
                async with self.session(name):
                    pass  # Postgres writes the cache before the session is open
        await in_thread(self._files.keep_caches)

    async def start(self, desired: Desired | None = None) -> None:
        """Start the server, unless it is running, and apply ``desired``.

        If ``desired`` is None, the configuration that was applied last stays in force.
        """
        applied = await in_thread(self._load)
        wanted = applied.settings if desired is None else desired.settings
        started = not self.running
        try:
            if started:
                if await in_thread(self._has_subscriptions_of_source):
                    await self._drop_subscriptions(wanted)
                await self._launch(wanted)
            if desired is not None and not await in_thread(applied.matches, desired):
                if not started:
                    await self._apply_settings(desired, applied)
                await self._apply(desired, applied, starting=started)
        except BaseException:
            if started:
                await self.stop(immediately=True)
            raise

    async def stop(self, *, immediately: bool = False) -> None:
        """Stop the server, and store the time of the last commit and the roles' passwords.

        An immediate stop stores nothing, and the next start has to recover the data.
        """
        postmaster = self._postmaster
        if postmaster is None:
            return
        changed = passwords = None
        oldest = 0
        if not immediately:
            with suppress(ClusterError):
                async with self.session() as session:
                    oldest = await oldest_transaction(session)
                    changed = await self._last_change_in(session)
                    passwords = await read_passwords(session)
        try:
            await postmaster.stop(immediately=immediately)
        finally:
            self._forget()
            await self._logins.close()
        await in_thread(self._forget_statistics)
        if changed is not None:
            await in_thread(self._store_change, changed, oldest)
        if passwords is not None:
            await in_thread(self._store_passwords, passwords)

    def _forget_statistics(self) -> None:
        """Remove the statistics of the stopped server. A Neon compute does not keep them either."""
        with (
            suppress(OSError),
            open_directory(self.data / STATISTICS) as directory,
            os.scandir(directory) as files,
        ):
            for file in files:
                os.unlink(file.name, dir_fd=directory)

    async def login(self, role: str, database: str) -> ServerLogin | None:
        """Return what the running server checks at a login, or None if the role does not exist."""
        return await self._logins.find(role, database)

    def password(self, role: str, desired: Desired) -> Password | None:
        """Return the password that the stopped server will accept after a start with ``desired``.

        Return None if the password is unknown, because the server is running or was not stopped
        cleanly.
        """
        try:
            stored = msgspec.json.decode(read_file(self.data / PASSWORDS), type=StoredPasswords)
        except (OSError, msgspec.DecodeError):
            return None
        return password_at_start(role, stored.roles, self._load(), desired)

    async def copy_to(self, target: Path) -> None:
        """Copy the data directory. A running server keeps running."""
        await in_thread(self.copy_password, self.data, target)
        if self.running:
            lsn = await self.copy_running(target)
        else:
            await in_thread(self.end_leftover_servers)
            copy = partial(copy_cluster, self.data, target, account=self._machine.account)
            await in_thread(copy)
            lsn = await in_thread(self._lsn_of_stopped, target)
        if self.history is not None:
            await in_thread(self._write_to, target / COPIED, lsn)

    async def copy_running(self, target: Path) -> str:
        """Copy the data directory of the running server. Return the LSN of the copy."""
        account = self._machine.account
        async with self.session() as session, self._keeping_wal(session):
            first = await begin_backup(session)
            await in_thread(partial(copy_cluster, self.data, target, account=account, wal=()))
            lsn, last, label = await end_backup(session)
            await in_thread(self._complete_backup, target, first, last, label)
        return lsn

    @asynccontextmanager
    async def _keeping_wal(self, session: AdminSession) -> AsyncGenerator[None]:
        """Make the running server keep its WAL, by setting ``wal_keep_size``.

        A replication slot would have the same effect, but clients can use up all slots. The setting
        takes effect before the checkpoint at the start of a backup. If the server is killed, its
        next start writes a new settings file without this setting.
        """
        self._wal_keepers += 1
        try:
            async with self._wal_keeping:
                if self._settings_before is None:
                    await in_thread(self._keep_wal)
                await await_setting(session, "wal_keep_size", _ALL_WAL)
            yield
        finally:
            await complete(self._release_wal())

    async def _release_wal(self) -> None:
        async with self._wal_keeping:
            self._wal_keepers -= 1
            if self._wal_keepers == 0 and self._settings_before is not None:
                before, self._settings_before = self._settings_before, None
                await in_thread(self._write, SETTINGS, before)
                if self._postmaster is not None:
                    self._postmaster.reload()

    def _keep_wal(self) -> None:
        kept = f"wal_keep_size = '{_ALL_WAL}'\n"
        # A full disk may have prevented an earlier copy from writing the file.
        self._settings_before = read_file(self.data / SETTINGS).decode().removesuffix(kept)
        self._write(SETTINGS, self._settings_before + kept)

    async def recover(self, target: Mapping[str, str]) -> None:
        """Run the server until it has recovered to ``target``, a mapping of Postgres settings."""
        settings = await in_thread(self.applied_settings)
        await self._launch(settings, {**_RECOVERY, **target})
        await self.stop()
        await in_thread(self.record_copy, await in_thread(recovered_to, self.data))

    async def empty(self) -> None:
        """Remove all rows of a copy that was never started. Roles, databases and schemas stay."""
        settings = await in_thread(self.applied_settings)
        needed: set[str] = set()
        await self._launch(settings, emptying.SETTINGS)
        try:
            async with self.session() as session:
                async with open_databases(session) as databases:
                    for name in databases:
                        async with self.session(name) as inside:
                            needed.update(await empty_database(inside))
                segment = await switch_wal(session)
        finally:
            await self.stop()
        await in_thread(forget_rows, self.data, needed, segment)
        await in_thread(self.record_copy)  # the data is no longer at the source's LSN

    async def add_base(
        self, history: History, installation: Installation, *, first: bool = False
    ) -> None:
        """Add a copy of the running server's data to its history."""
        number = await in_thread(history.new_base)
        lsn = await self.copy_running(history.base_directory(number))
        await in_thread(partial(history.add, number, installation, lsn, first=first))

    def applied_settings(self) -> Mapping[str, str]:
        """Return the settings that were applied last."""
        return self._load().settings

    def record_settings_of(self, source: "Cluster") -> None:
        """Record that the settings of ``source`` were applied, but not its roles or databases.

        The next start then creates and changes everything that the branch must contain.
        """
        self._record(Applied(settings=dict(source.applied_settings())))

    def record_copy(self, lsn: str = "") -> None:
        """Record that the data is a new copy, and remove the history of earlier data.

        The history that the next start begins then covers the branch from its creation. ``lsn`` is
        the LSN of the source at which the data was copied, if it is known.
        """
        if self.history is not None:
            remove(history_of(self.data))
            self._write(COPIED, lsn)

    def installation(self) -> Installation:
        """Return the installation for the version of the data."""
        return self._machine.installation(self.data)

    def stored_change(self) -> datetime | None:
        """Return the time of the last commit, or None if the server is running or was killed."""
        try:
            return datetime.fromisoformat(read_file(self.data / CHANGED).decode("ascii"))
        except (OSError, ValueError):
            return None

    async def record_files(self, source: "Cluster") -> None:
        """Record the files of this copy of ``source``, before the first start of the copy."""
        account = self._machine.account
        self._files = await in_thread(RestorableCopy, source.data, self.data, account)

    async def restore_files(self) -> None:
        """Undo all changes since the copy was made. The server must be stopped.

        The source must be stopped and unchanged. Raise ClusterError if a file cannot be written.
        """
        assert self._files is not None, "record_files() was called"
        await in_thread(self.end_leftover_servers)
        try:
            await in_thread(self._files.restore)
        except OSError as error:
            raise ClusterError(f"{str(self.data)!r} was not restored: {error}") from error

    async def activity(self) -> Activity:
        """Return the client activity on the running server.

        Clients that connected and disconnected since the last call count as active too.
        """
        applied = await in_thread(self._load)
        async with self.session() as session:
            activity = await read_activity(session)
            before, self._client_sessions = self._client_sessions, await count_sessions(session)
            changes = applied.changes_to(await read_content(session))
        activity = msgspec.structs.replace(activity, has_sql_changes=bool(changes))
        if before not in (None, self._client_sessions):
            return msgspec.structs.replace(activity, last_active=datetime.now(UTC))
        return activity

    async def sql_changes(self) -> SqlChanges:
        """Return the roles and databases of the running server that clients changed in SQL."""
        applied = await in_thread(self._load)
        async with self.session() as session:
            return applied.changes_to(await read_content(session))

    async def accept(self, changes: SqlChanges) -> None:
        """Record that changes in SQL are known, so :meth:`sql_changes` no longer returns them."""
        applied = await in_thread(self._load)
        await in_thread(self._record, applied.with_found(changes.content))

    def forget_found(self, desired: Desired) -> None:
        """Forget the roles and databases that clients created, unless they are in ``desired``.

        :meth:`sql_changes` then returns them again.
        """
        applied = self._load()
        if (kept := applied.without_found(desired)) != applied:
            self._record(kept)

    async def changed_at(self) -> datetime:
        """Return the time of the last commit. Start a stopped server if the time is unknown."""
        if self.running:
            return await self._last_change()
        stored = await in_thread(self.stored_change)
        if stored is None:
            await self.start()
            try:
                stored = await self._last_change()
            finally:
                await self.stop()
        return stored

    def end_leftover_servers(self) -> None:
        """End the processes that a killed server left behind. The server must not be running."""
        if (self.data / "postmaster.pid").exists():
            end_servers(self.data)
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def client_program(self, name: str, database: str) -> tuple[list[str], dict[str, str]]:
        """Return the command of a client program, and the environment variables for its connection.

        The variables override settings that owners stored in databases with ``ALTER DATABASE``.
        """
        if self._address is None:
            raise ClusterError("The Postgres server is not running")
        installation = self.installation()
        variables = {
            "PGHOST": str(self._address.directory),
            "PGPORT": str(self._address.port),
            "PGUSER": ADMINISTRATOR,
            "PGPASSWORD": self._password(),
            "PGDATABASE": database,
            "PGCLIENTENCODING": "UTF8",
            "PGOPTIONS": session_options(installation.version),
        }
        return [str(installation.program(name)), "--no-password"], variables

    def copy_password(self, source: Path, target: Path) -> None:
        """Copy the administrator's password from data directory ``source`` to ``target``."""
        password = password_file(source).read_text(encoding="utf-8")
        write_file(password_file(target), password, account=None, durable=self._machine.durable)

    def size(self) -> int:
        """Return the number of bytes that the data directory and its history use on disk."""
        return disk_usage(self.data) + disk_usage(history_of(self.data))

    def record_change(self) -> None:
        """Store the current time as the time of the last change."""
        self._write(CHANGED, datetime.now(UTC).isoformat())

    async def _drop_subscriptions(self, settings: Mapping[str, str]) -> None:
        """Drop a copy's subscriptions, which would receive the changes meant for the source's."""
        await self._launch(settings, {"max_logical_replication_workers": "0"})
        async with self.session() as session:
            databases = await subscribed_databases(session)
        for name in databases:
            async with self.session(name) as session:
                await drop_subscriptions(session)
        await self.stop()
        await in_thread(self.record_copy)  # the data is no longer at the source's LSN

    async def _launch(
        self, settings: Mapping[str, str], preparation: Mapping[str, str] | None = None
    ) -> None:
        """Start the server.

        ``preparation`` contains further settings for a start that only prepares the data. Such a
        start does not keep history.
        """
        machine = self._machine
        address = self._address = machine.new_address()
        try:
            history = self.history if preparation is None else None
            installation, program, options = await in_thread(
                self._prepare, settings, address, history, preparation
            )
            postmaster = Postmaster(program, self.data, options, machine.account, self._crashed)
            await postmaster.start()
            await in_thread(forget_label, self.data)
        except BaseException as error:
            self._forget()
            if isinstance(error, ClusterError) and says_full(str(error)):
                disk = f"the disk of {str(self.data.parent)!r} is full"
                raise DiskFullError(f"{disk}: {error}. {MORE_SPACE}") from error
            raise
        self._postmaster = postmaster
        if history is not None:
            await self._begin_history(history, installation)

    async def _begin_history(self, history: History, installation: Installation) -> None:
        """Make the first copy for the history of the running server, unless one exists."""
        is_new = await in_thread(history.is_new)
        if not await in_thread(history.bases):
            await self.add_base(history, installation, first=is_new)
        if is_new:
            await in_thread((self.data / COPIED).unlink)

    def _forget(self) -> None:
        """Release the port and the login session of a server that is no longer running."""
        if self._address is not None:
            self._machine.ports.discard(self._address.port)
        self._postmaster = self._address = self._client_sessions = None
        self._logins.forget()

    def _prepare(
        self,
        settings: Mapping[str, str],
        address: Address,
        history: History | None,
        preparation: Mapping[str, str] | None,
    ) -> tuple[Installation, Path, Mapping[str, str]]:
        """Prepare the data directory for a start. Return the installation, program and options."""
        installation = self._machine.installation(self.data)
        self.end_leftover_servers()
        for file in (address.socket, address.socket.with_name(f"{address.socket.name}.lock")):
            file.unlink(missing_ok=True)  # a killed server left them behind
        if put_label_back(self.data, installation, self._machine.account):
            logger.info("%s: the first start was interrupted, and is repeated", self.data)
        self._write_settings(installation.major, settings, is_own=preparation is None)
        if history is not None:
            history.begin(installation, self.stored_change())
        self._changed = self.stored_change()
        for name in (CHANGED, PASSWORDS):
            (self.data / name).unlink(missing_ok=True)  # they would be wrong after a kill
        program = self._machine.extensions.program(installation)
        own = history.settings() if history else preparation or {}
        return installation, program, self._options(address, installation, own)

    async def _apply(self, desired: Desired, applied: Applied, *, starting: bool) -> None:
        """Change roles and databases to match ``desired``, and record ``desired``.

        Roles and databases that cannot be dropped stay, and the next start tries to drop them
        again. If this is a start, only log the reasons. Otherwise, raise ClusterError with the
        reasons.
        """
        major = await in_thread(self.major)
        async with self.session() as session:
            await apply_roles_and_databases(session, desired, applied, major)
            dropped = applied.dropped(desired, await read_content(session))
        known: set[tuple[str, str]] = set() if starting else {*applied.left} & {*dropped}
        reasons: list[str] = []
        left = set(known)
        for kind, name in dropped:
            if (kind, name) in known:
                continue
            try:
                await (self._drop_database(name) if kind == DATABASE else self._drop_role(name))
            except ClusterError as error:
                if not self.running:
                    raise
                left.add((kind, name))
                reasons.append(f"the {kind} {name!r} was not dropped: {error}")
        after = await in_thread(applied.after, desired)
        await in_thread(self._record, after.keeping(applied, left))
        if reasons and not starting:
            raise ClusterError(f"{'; '.join(reasons)}. The next start tries it again")
        for reason in reasons:
            logger.warning("%s: %s", self.data.name, reason)

    async def _apply_settings(self, desired: Desired, applied: Applied) -> None:
        """Write and reload settings. Restart the server if a changed setting needs a restart."""
        changed = {name for name, _ in desired.settings.items() ^ applied.settings.items()}
        if not changed:
            return
        major = await in_thread(self.major)
        await in_thread(self._write_settings, major, desired.settings)
        try:
            if await self._reload(changed):
                await self.stop()
                await self._launch(desired.settings)
        except BaseException:
            await in_thread(self._write_settings, major, applied.settings)
            if self.running:
                await self._reload(changed)
            else:
                await self._launch(applied.settings)
            raise

    async def _reload(self, changed: Iterable[str]) -> bool:
        async with self.session() as session:
            return await reload_settings(session, changed)

    def major(self) -> int:
        """Return the major version of the data."""
        return self._machine.installation(self.data).major

    async def _drop_database(self, name: str) -> None:
        async with self.session() as session:
            if await open_for_drop(session, name):
                async with self.session(name) as inside:
                    await roll_back_prepared(inside)
                    await drop_subscriptions(inside)
            await drop_database(session, name)

    async def _drop_role(self, name: str) -> None:
        async with self.session() as session:
            async with open_databases(session) as owners:
                for database, owner in owners.items():
                    if owner == name:
                        raise ClusterError(
                            f"it owns the database {database!r}: change its owner, or drop it"
                        )
                for database, owner in owners.items():
                    async with self.session(database) as inside:
                        await disown(inside, name, owner)
            await session.execute(f"DROP ROLE {quote_name(name)}")

    async def _last_change(self) -> datetime:
        async with self.session() as session:
            return await self._last_change_in(session)

    async def _last_change_in(self, session: AdminSession) -> datetime:
        return await last_commit(session) or self._changed or datetime.now(UTC)

    def _crashed(self, reason: str) -> None:
        self._forget()
        self.on_crash(reason)

    def _login(self) -> tuple[str, tuple[int, int]]:
        """Return the administrator's password and the version of the server."""
        return self._password(), self.installation().version

    def _password(self) -> str:
        return password_file(self.data).read_text(encoding="utf-8").strip()

    def _load(self) -> Applied:
        """Return the configuration that was applied last.

        Forbidden settings are left out, because the server could have written them to the file.
        """
        try:
            applied = msgspec.json.decode(read_file(self.data / APPLIED), type=Applied)
        except FileNotFoundError:
            return Applied()
        except (OSError, msgspec.DecodeError) as error:
            raise ClusterError(
                f"{str(self.data / APPLIED)!r} is damaged ({error}): delete it. The next start then"
                " applies all roles, databases and settings of the branch again"
            ) from None
        settings = applied.settings.items()
        kept = {name: value for name, value in settings if server_refusal(name, value) is None}
        return msgspec.structs.replace(applied, settings=kept)

    def _record(self, applied: Applied) -> None:
        self._write(APPLIED, msgspec.json.encode(applied).decode())

    def _store_change(self, changed: datetime, oldest: int) -> None:
        """Store the time of the last commit before the server stopped cleanly.

        Clients could commit after ``changed`` was read, in transactions from ``oldest`` on.
        """
        with suppress(OSError):  # in this case, the time is unknown, as after a kill
            if stopped_cleanly(self.data):
                newest = max(changed, newest_commit(self.data, oldest))
                self._write(CHANGED, newest.isoformat())

    def _store_passwords(self, passwords: StoredPasswords) -> None:
        """Store the stopped server's passwords, unless roles changed after these were read."""
        with suppress(OSError, ClusterError):  # in this case, the next login starts the server
            if passwords.are_those_of(self.data):
                self._write(PASSWORDS, msgspec.json.encode(passwords).decode())

    async def _open_for_logins(self) -> client.WireSession:
        """Open the administrator session that looks up logins."""
        address = self._address
        if address is None or not self.running:
            raise ClusterError("The Postgres server is not running")
        return await open_session(address, *await in_thread(self._login))

    def _has_subscriptions_of_source(self) -> bool:
        """Return whether the data is a new copy that may contain the source's subscriptions.

        In a new copy, the settings file still names the data directory of the source. Without
        subscriptions, the file of the catalog ``pg_subscription`` is empty. After VACUUM FULL, it
        has another name; subscriptions are then assumed.
        """
        catalog, settings = self.data / "global" / SUBSCRIPTIONS, self.data / SETTINGS
        if not settings.exists() or (catalog.exists() and catalog.stat().st_size == 0):
            return False
        owner, _, _ = read_file(settings).decode(errors="replace").partition("\n")
        return owner != self._owner

    @property
    def _owner(self) -> str:
        return f"# {self.data.name}"

    def _options(
        self, address: Address, installation: Installation, own: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the command-line options for a start. ``own`` replaces some of them.

        Options take precedence over configuration files, so they apply to every start.
        """
        fixed = {
            **installation.fixed_settings(self._machine.account),
            "config_file": str(self.data / "postgresql.conf"),
            "data_directory": str(self.data),
            "hba_file": str(self.data / "pg_hba.conf"),
            "ident_file": str(self.data / "pg_ident.conf"),
            **options(address.directory, address.port, durable=self._machine.durable),
        }
        # ``own`` comes last, because Postgres refuses an empty recovery target after one that is
        # set.
        return {name: value for name, value in fixed.items() if name not in own} | {**own}

    def _write_settings(
        self, major: int, settings: Mapping[str, str], *, is_own: bool = True
    ) -> None:
        defaults = default_settings(major, durable=self._machine.durable)
        owner = f"{self._owner}\n" if is_own else ""
        self._write(SETTINGS, owner + render_settings({**defaults, **settings}))

    def _write(self, name: str, text: str) -> None:
        self._write_to(self.data / name, text)

    def _write_to(self, path: Path, text: str) -> None:
        machine = self._machine
        write_file(path, text, account=machine.account, durable=machine.durable)

    def _lsn_of_stopped(self, copy: Path) -> str:
        """Return the LSN of a copy of the stopped server, or "" if it is unknown."""
        if lsn := copied_at(copy):
            return lsn
        if self.history is None or self.stored_change() is None:
            return ""
        return self.history.end_of_stopped(self.installation())

    def _complete_backup(self, target: Path, first: str, last: str, label: str) -> None:
        """Add the backup's WAL, and the label that recovery needs, to the copy ``target``."""
        names = (path.name for path in (self.data / "pg_wal").iterdir())
        segments = [name for name in names if len(name) == 24 and first <= name <= last]
        account = self._machine.account
        copy_wal(self.data, target, segments, account=account)
        write_file(target / "backup_label", label, account=account, durable=False)
