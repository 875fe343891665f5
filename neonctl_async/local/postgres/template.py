"""The template of new data directories: initdb makes it once for each version of Postgres."""

import platform
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from neonctl_async.local.postgres.account import ServerAccount, check_reachable, give
from neonctl_async.local.postgres.binaries import Installation
from neonctl_async.local.postgres.cache import (
    cache_directories,
    is_intact,
    locked,
    seal,
    write_private,
)
from neonctl_async.local.postgres.copying import copy_cluster, remove
from neonctl_async.local.postgres.errors import ClusterError
from neonctl_async.local.postgres.programs import Finished, ProgramTimeoutError, run_program

ADMINISTRATOR: Final = "cloud_admin"
"""The superuser of every cluster."""

PASSWORD_FILE: Final = "neonctl_admin_password"  # noqa: S105 - the name of a file
"""The file in a data directory that has the password of the administrator."""

TIME_LIMIT: Final = 60.0
"""The time that initdb may take, in seconds. It usually takes less than one second."""

LAYOUT: Final = 1
"""The number of this module's layout of templates. A change makes cached templates unused."""

_PREFIX: Final = "neonctl-async-initdb-"
_ABANDONED_AFTER: Final = 3600.0


class Template(NamedTuple):
    """A data directory to copy. No server runs on it."""

    directory: Path


def prepare_template(installation: Installation, account: ServerAccount | None) -> Template:
    """Return the template of a version. It is made if the cache does not have an intact one.

    Raise PostgresUnavailableError if the account cannot run this installation, and ClusterError
    if initdb fails.
    """
    check_reachable(installation.directory, account)
    name = entry_name(installation)
    failure: OSError | None = None
    for cache in cache_directories():
        try:
            return Template(_cached(cache / name, installation, account))
        except OSError as error:
            failure = error  # the next directory may be writable
    raise ClusterError(f"no directory for the template of new clusters: {failure}") from failure


def _cached(entry: Path, installation: Installation, account: ServerAccount | None) -> Path:
    """Return the template of an entry of the cache. It is made if it is missing or damaged."""
    if not is_intact(entry):
        with locked(entry.with_name(f"{entry.name}.lock")):
            if not is_intact(entry):  # another process may have made it during the wait
                _replace(entry, installation, account)
    return entry / "data"


def entry_name(installation: Installation) -> str:
    """Return the name of a template, which differs between different builds of one version."""
    size = installation.program("postgres").stat().st_size
    major, minor = installation.version
    return f"{major}.{minor}-{platform.machine()}-{size}-{LAYOUT}"


def _replace(entry: Path, installation: Installation, account: ServerAccount | None) -> None:
    """Make the template, and replace a damaged one. Nothing incomplete ever has its name."""
    partial = entry.with_name(f"{entry.name}.partial")
    remove(partial)
    try:
        partial.mkdir(mode=0o700)
        with _workplace(account) as workplace:
            _initialize(workplace, installation, account)
            copy_cluster(workplace / "data", partial / "data", account=None)
        seal(partial)
        remove(entry)
        partial.rename(entry)
    finally:
        remove(partial)


@contextmanager
def _workplace(account: ServerAccount | None) -> Iterator[Path]:
    """Make a temporary directory for initdb. The account cannot enter the cache of root."""
    temporary = Path(tempfile.gettempdir())
    for abandoned in temporary.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another process removes it, or another user owns it
            if abandoned.lstat().st_mtime < time.time() - _ABANDONED_AFTER:
                remove(abandoned)
    check_reachable(temporary, account)
    workplace = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=temporary))
    try:
        yield workplace
    finally:
        remove(workplace)


def _initialize(workplace: Path, installation: Installation, account: ServerAccount | None) -> None:
    """Run initdb. The result is in the directory ``data``."""
    password = secrets.token_urlsafe(32)
    password_file = workplace / "password"
    write_private(password_file, password)
    give(workplace, account)
    data = workplace / "data"
    for locale in _locales(installation):
        finished = _run_initdb(data, password_file, installation, account, locale)
        if finished.status == 0:
            break
        if "locale" not in finished.output:
            raise _initdb_error(finished)
        remove(data)  # initdb does not remove everything after some errors
    else:
        raise _initdb_error(finished)
    (data / "pg_hba.conf").write_text("local all all scram-sha-256\n", encoding="utf-8")
    write_private(data / PASSWORD_FILE, password)


def _locales(installation: Installation) -> list[list[str]]:
    """Return options of initdb, most useful first: the locale, without which the next is tried."""
    builtin = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return [
        ["--locale=C.UTF-8"],
        *([builtin] if installation.major >= 17 else []),
        ["--locale=C"],
    ]


def _run_initdb(
    data: Path,
    password_file: Path,
    installation: Installation,
    account: ServerAccount | None,
    locale: list[str],
) -> Finished:
    """Run initdb, and return its result, also if it failed."""
    options = [
        f"--pgdata={data}",
        f"--username={ADMINISTRATOR}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--lc-messages=C",
        "--wal-segsize=1",
        "--no-instructions",
        "--no-sync",  # the cache has checksums
    ]
    if installation.major >= 18:
        options.append("--no-data-checksums")  # the default of older versions
    command = [installation.program("initdb"), *options, *locale]
    try:
        return run_program(command, timeout=TIME_LIMIT, account=account)
    except ProgramTimeoutError as error:
        raise ClusterError(f"initdb did not finish within {TIME_LIMIT:g} seconds") from error
    except OSError as error:
        user = f" as user {account.name!r}" if account else ""
        raise ClusterError(f"{command[0]} cannot be started{user}: {error.strerror}") from error


def _initdb_error(finished: Finished) -> ClusterError:
    """Return an error with the last lines of the output of initdb."""
    lines = [line.strip() for line in finished.output.splitlines() if line.strip()]
    return ClusterError(f"initdb failed with status {finished.status}: {' '.join(lines[-4:])}")
