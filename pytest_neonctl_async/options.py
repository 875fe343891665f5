"""The plugin's command-line options, and its settings in pytest's configuration file."""

import os
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from pytest_neonctl_async.server_process import OPERATION_SECONDS

Postgres: TypeAlias = bool | str | os.PathLike[str]
"""True if branches are databases, False if not, or the directory of the Postgres programs."""

_ON: Final = frozenset({"true", "1", "yes", "on"})
_OFF: Final = frozenset({"false", "0", "no", "off", ""})


def add_options(parser: pytest.Parser) -> None:
    """Add the ``--neon-…`` options and the ``neon_…`` settings."""
    group = parser.getgroup("neon", "Neon, or a local control plane in its place")
    group.addoption(
        "--neon-cloud",
        action="store_true",
        help="run against Neon, in the project NEON_PROJECT_ID, with the key NEON_API_KEY",
    )
    group.addoption(
        "--neon-rebuild",
        action="store_true",
        help="run cached migrations again, and replace the result of earlier test runs",
    )
    group.addoption(
        "--neon-keep-failed",
        action="store_true",
        help="keep the local databases of failed tests for an hour, and show how to connect",
    )
    parser.addini(
        "neon_operation_seconds",
        "duration of an operation of the local control plane, in seconds",
        default=str(OPERATION_SECONDS),
    )
    parser.addini(
        "neon_postgres",
        "true: branches of the local control plane are Postgres databases; or the directory of "
        "the programs of Postgres",
        default="false",
    )
    parser.addini(
        "neon_django",
        "true: the databases of pytest-django are in a branch for each worker",
        type="bool",
        default=False,
    )


def operation_seconds(config: pytest.Config) -> float:
    """Return ``neon_operation_seconds``. Raise UsageError if it is not a number of seconds."""
    text = config.getini("neon_operation_seconds")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise pytest.UsageError(f"neon_operation_seconds is {text!r}: expected seconds, 0 or more")
    return seconds


def postgres_option(config: pytest.Config) -> Postgres:
    """Return ``neon_postgres``. A relative directory is relative to the configuration file."""
    text: str = config.getini("neon_postgres")
    if (word := text.strip().lower()) in _ON | _OFF:
        return word in _ON
    base = config.rootpath if config.inipath is None else config.inipath.parent
    return base / text


def postgres_source(config: pytest.Config) -> Path | None:
    """Return the file that sets ``neon_postgres``, often in a parent directory, or None."""
    overridden = config.getoption("override_ini") or ()
    if not postgres_option(config) or any(each.startswith("neon_postgres=") for each in overridden):
        return None
    return config.inipath


def postgres_argument(value: Postgres) -> str | None:
    """Return the argument for :meth:`ServerProcess.urls`: None, a directory, or "" to search.

    Raise UsageError if the value is not the path of a directory.
    """
    if isinstance(value, bool):
        return "" if value else None
    path = Path(value).expanduser().absolute()
    if not path.is_dir():
        raise pytest.UsageError(
            f"neon_postgres is {os.fspath(value)!r}: expected true, false, or the directory of the "
            "programs of Postgres"
        )
    return str(path)


def django_option(config: pytest.Config) -> bool:
    """Return ``neon_django``. Raise UsageError if it is true without pytest-django."""
    is_on: bool = config.getini("neon_django")
    if is_on and config.getoption("create_db", None) is None:
        raise pytest.UsageError("neon_django needs pytest-django: pip install pytest-django")
    return is_on


def rebuilds_option(config: pytest.Config) -> bool:
    """Return ``--neon-rebuild``, or with ``neon_django`` also pytest-django's ``--create-db``."""
    return bool(config.getoption("neon_rebuild")) or (
        django_option(config) and bool(config.getoption("create_db"))
    )


def default_loop_scope(config: pytest.Config) -> str | None:
    """Return pytest-asyncio's default loop scope for tests, or None if it has no such setting."""
    try:
        scope: str = config.getini("asyncio_default_test_loop_scope")
    except ValueError:
        return None
    return scope
