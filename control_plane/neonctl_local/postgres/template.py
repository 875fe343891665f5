"""The template of new data directories, which initdb makes once for each version of Postgres."""

import platform
import re
import secrets
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from shutil import copyfile
from typing import Final, NamedTuple

from neonctl_local.postgres.account import ServerAccount, check_named, check_reachable, give
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.cache import (
    REMEDY,
    cache_directories,
    is_intact,
    locked,
    replacing,
    write_private,
)
from neonctl_local.postgres.configuration import scram_verifier
from neonctl_local.postgres.copying import copy_directory, remove
from neonctl_local.postgres.errors import ClusterError, PostgresUnavailableError
from neonctl_local.postgres.programs import Finished, ProgramTimeoutError, run_program
from neonctl_local.postgres.scratch import remove_abandoned, scratch_directory

ADMINISTRATOR: Final = "cloud_admin"
"""The superuser of every cluster."""

TIME_LIMIT: Final = 60.0
"""How long one program may take, in seconds. It usually takes less than one second."""

LAYOUT: Final = 5
"""The version of the layout of templates. Cached templates of another version are not used."""

_ITERATIONS: Final = 1
"""The number of SCRAM iterations for the administrator's password.

asyncpg computes them on the event loop, where the usual 4,096 take milliseconds and delay all
connections of the proxy. Iterations protect short passwords; this one has 256 random bits.
"""

_CLOSED_VIEWS: Final = (
    resources.files("neonctl_local.postgres")
    .joinpath("closed_views.sql")
    .read_text(encoding="utf-8")
)
"""The SQL that makes the system views read-only for members of ``pg_write_all_data``.

Otherwise, they could write to each view whose owner may write to the table behind it. For example,
``pg_group`` is a view of ``pg_authid``. If a client used it to give its role the OID of one of
Postgres's own roles, the role could run commands on this machine.
"""

_LOCALE_ERROR: Final = re.compile(r"(error|FATAL):.*(locale|encoding)")


class Template(NamedTuple):
    """A data directory to copy. No server is running on it."""

    directory: Path


def password_file(data: Path) -> Path:
    """Return the file with the administrator's password for a data directory.

    It is beside the directory and belongs to the control plane, because a server sends everything
    in its data directory to any role that requests a base backup.
    """
    return data.with_name(f"{data.name}.password")


def prepare_template(installation: Installation, account: ServerAccount | None) -> Template:
    """Return the template for an installation. Make it unless an intact one is in the cache.

    Raise PostgresUnavailableError if the account cannot run this installation, and ClusterError
    if initdb fails or the template cannot be stored.
    """
    check_reachable(installation.directory, account)
    name = entry_name(installation)
    failure: OSError | None = None
    try:
        remove_abandoned(account)
        for cache in cache_directories():
            try:
                return Template(_cached(cache / name, installation, account))
            except OSError as error:
                failure = error  # the next directory may be writable
    except OSError as error:
        failure = error  # no directory for temporary files is writable
    raise ClusterError(
        f"the template of new clusters cannot be stored: {failure}. {REMEDY}"
    ) from failure


def _cached(entry: Path, installation: Installation, account: ServerAccount | None) -> Path:
    """Return the template in a cache entry. Make it if it is missing or damaged."""
    if not is_intact(entry):
        with locked(entry.with_name(f"{entry.name}.lock")):
            if not is_intact(entry):  # another process may have made it during the wait
                _replace(entry, installation, account)
    return entry / "data"


def entry_name(installation: Installation) -> str:
    """Return the name of a cache entry, which differs between builds of the same version."""
    try:
        size = installation.program("postgres").stat().st_size
    except OSError as error:
        raise PostgresUnavailableError(
            f"Postgres is not in {str(installation.directory)!r} any more: {error.strerror}"
        ) from error
    major, minor = installation.version
    return f"{major}.{minor}-{platform.machine()}-{size}-{LAYOUT}"


def _replace(entry: Path, installation: Installation, account: ServerAccount | None) -> None:
    """Make the template, and replace a damaged one."""
    with replacing(entry) as new, scratch_directory(account) as scratch:
        password = _initialize(scratch, installation, account)
        copy_directory(scratch / "data", new / "data", account=None)
        write_private(password_file(new / "data"), password)


def _initialize(scratch: Path, installation: Installation, account: ServerAccount | None) -> str:
    """Make a data directory ``data`` in ``scratch``. Return the administrator's password."""
    check_named(account)
    password = secrets.token_urlsafe(32)
    chosen = scratch / "password"
    write_private(chosen, scram_verifier(password, secrets.token_bytes(16), _ITERATIONS))
    data, inputs = scratch / "data", scratch / "inputs"
    _copy_inputs(inputs, installation, account)
    give(scratch, account)
    finished = _run_initdb(data, inputs, chosen, installation, account)
    if finished.status:
        lines = [line.strip() for line in finished.output.splitlines() if line.strip()]
        raise ClusterError(f"initdb failed with status {finished.status}: {' '.join(lines[-4:])}")
    (data / "pg_hba.conf").write_text("local all all scram-sha-256\n", encoding="utf-8")
    return password


def _copy_inputs(target: Path, installation: Installation, account: ServerAccount | None) -> None:
    """Copy the files that initdb reads, and append ``_CLOSED_VIEWS`` to the last one that it runs.

    After that file, initdb only creates plpgsql, and copies the database as ``template0`` and
    ``postgres``.
    """
    shown = _run([installation.program("initdb"), "--show", "-D", target], account).output
    found = re.search("^share_path=(.+)$", shown, re.MULTILINE)
    if found is None:
        raise ClusterError(f"initdb does not say where its files are: {shown[-500:]}")
    target.mkdir()
    for file in Path(found[1]).iterdir():
        if file.is_file():
            copyfile(file, target / file.name)
    with (target / "information_schema.sql").open("a", encoding="utf-8") as statements:
        statements.write(f"\n\n{_CLOSED_VIEWS}")


def _run_initdb(
    data: Path,
    inputs: Path,
    password: Path,
    installation: Installation,
    account: ServerAccount | None,
) -> Finished:
    """Run initdb with the first locale that works. Return the last result, even a failure."""
    command: list[str | Path] = [
        installation.program("initdb"),
        f"--pgdata={data}",
        f"-L{inputs}",
        f"--username={ADMINISTRATOR}",
        f"--pwfile={password}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--lc-messages=C",
        "--wal-segsize=1",
        "--no-instructions",
        "--no-sync",  # checksums show damage to the cache
    ]
    if installation.major >= 18:
        command.append("--no-data-checksums")  # older versions have none by default
    preferred, *others = _locales(installation)
    finished = _run([*command, *preferred], account)
    for locale in others:
        if finished.status == 0 or not _LOCALE_ERROR.search(finished.output):
            break
        remove(data)
        finished = _run([*command, *locale], account)
    return finished


def _locales(installation: Installation) -> list[list[str]]:
    """Return the options of initdb for locales, best first. Every machine supports the last one."""
    builtin = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    newer = [builtin] if installation.major >= 17 else []
    return [["--locale=C.UTF-8"], *newer, ["--locale=C"]]


def _run(command: Sequence[str | Path], account: ServerAccount | None) -> Finished:
    name = Path(command[0]).name
    try:
        return run_program(command, timeout=TIME_LIMIT, account=account)
    except ProgramTimeoutError as error:
        raise ClusterError(f"{name} did not finish within {TIME_LIMIT:g} seconds") from error
    except OSError as error:
        user = f" as user {account.name!r}" if account else ""
        raise ClusterError(f"{command[0]} cannot be started{user}: {error.strerror}") from error
