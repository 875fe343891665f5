"""Migrations leave the process as it was."""

import asyncio
import logging
import logging.config
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from neonctl_async import ConnectionUri
from pytest_neonctl_async.migrations import migrate_database

URI = ConnectionUri("postgresql://somebody:sesame@127.0.0.1/neondb")
ALEMBIC = {
    "version": 1,
    "root": {"level": "CRITICAL", "handlers": ["console"]},
    "loggers": {"tests.new": {"level": "ERROR", "handlers": ["console"], "propagate": False}},
    "handlers": {"console": {"class": "logging.StreamHandler"}},
}
"""What Alembic's ``alembic.ini`` configures, in another form."""

LOGGER = logging.getLogger("tests.process_state")
HANDLER = logging.NullHandler()
ABSTRACT: Any = asyncio.AbstractEventLoop
LOOP = ABSTRACT()


def loop_policy() -> Any:
    with warnings.catch_warnings(action="ignore"):
        return asyncio.get_event_loop_policy()  # pyright: ignore[reportDeprecated] - until Python 3.16


def set_loop_policy() -> None:
    with warnings.catch_warnings(action="ignore"):
        asyncio.set_event_loop_policy(type(loop_policy())())  # pyright: ignore[reportDeprecated] - as above


def current_loop() -> object:
    """Return the loop of this thread, and whether it was ever set, without creating one."""
    local: object = loop_policy()._local  # noqa: SLF001 - asyncio has no function for it
    return vars(local).copy()


def configure_logging() -> None:
    """Disable the loggers that exist, as Alembic's ``env.py`` does."""
    logging.config.dictConfig(ALEMBIC)


CHANGES: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "disabled loggers": (configure_logging, lambda: LOGGER.disabled),
    "handlers of the root": (configure_logging, lambda: logging.root.handlers[:]),
    "level of the root": (configure_logging, lambda: logging.root.level),
    "level of a logger": (
        lambda: LOGGER.setLevel("CRITICAL"),
        lambda: (LOGGER.level, LOGGER.isEnabledFor(logging.ERROR)),
    ),
    "propagation": (
        lambda: setattr(LOGGER, "propagate", not LOGGER.propagate),
        lambda: LOGGER.propagate,
    ),
    "handlers of a logger": (
        lambda: LOGGER.addHandler(logging.StreamHandler()),
        lambda: LOGGER.handlers[:],
    ),
    "filters of a logger": (lambda: LOGGER.addFilter(bool), lambda: LOGGER.filters[:]),
    "level of a handler": (lambda: HANDLER.setLevel("ERROR"), lambda: HANDLER.level),
    "logging.disable": (logging.disable, lambda: logging.root.manager.disable),
    "factory of records": (
        lambda: logging.setLogRecordFactory(lambda *_args, **_more: logging.makeLogRecord({})),
        logging.getLogRecordFactory,
    ),
    "capture of warnings": (lambda: logging.captureWarnings(True), lambda: warnings.showwarning),
    "filters of warnings": (lambda: warnings.simplefilter("ignore"), lambda: warnings.filters[:]),
    "a new variable": (lambda: os.environ.update(NEW="1"), lambda: "NEW" in os.environ),
    "a changed variable": (lambda: os.environ.update(PATH=""), lambda: os.environ["PATH"]),
    "a removed variable": (lambda: os.environ.pop("PATH"), lambda: os.environ.get("PATH")),
    "the working directory": (lambda: os.chdir("/"), os.getcwd),
    "sys.path": (lambda: sys.path.insert(0, "migrations"), lambda: sys.path[:]),
    "another sys.path": (lambda: setattr(sys, "path", sys.path[:]), lambda: id(sys.path)),
    "a signal handler": (
        lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
        lambda: signal.getsignal(signal.SIGTERM),
    ),
    "the event loop policy": (set_loop_policy, loop_policy),
    "the event loop": (lambda: asyncio.set_event_loop(LOOP), current_loop),
}
"""What a migration may change, and how to read it."""


@pytest.fixture(autouse=True)
def configured_logger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Give the logger a handler. Undo what a test changes, so that it fails alone."""
    monkeypatch.chdir(tmp_path)
    LOGGER.addHandler(HANDLER)
    yield
    LOGGER.removeHandler(HANDLER)


@pytest.mark.parametrize("name", CHANGES)
def test_state_is_restored(name: str) -> None:
    change, read = CHANGES[name]
    before = read()
    during: list[object] = []

    def migrate(_uri: ConnectionUri) -> None:
        change()
        during.append(read())

    migrate_database(migrate, URI)
    assert read() == before
    assert during != [before]


@pytest.mark.parametrize("is_async", [False, True])
def test_state_is_restored_after_a_failure(*, is_async: bool) -> None:
    def fail(_uri: ConnectionUri) -> None:
        configure_logging()
        os.environ["NEW"] = "1"
        raise ValueError("no such table")

    async def fail_later(uri: ConnectionUri) -> None:
        fail(uri)

    with pytest.raises(ValueError, match="no such table"):
        migrate_database(fail_later if is_async else fail, URI)
    assert not LOGGER.disabled
    assert "NEW" not in os.environ


def test_new_logger_is_as_if_the_migrations_had_not_run() -> None:
    migrate_database(lambda _uri: configure_logging(), URI)
    new = logging.getLogger("tests.new")
    assert (new.level, new.handlers, new.propagate, new.disabled) == (
        logging.NOTSET,
        [],
        True,
        False,
    )


def test_log_file_of_the_tests_stays_open(tmp_path: Path) -> None:
    handler = logging.FileHandler(tmp_path / "tests.log", mode="w")
    LOGGER.addHandler(handler)
    migrate_database(lambda _uri: configure_logging(), URI)
    LOGGER.error("after the migrations")
    LOGGER.removeHandler(handler)
    handler.close()
    assert (tmp_path / "tests.log").read_text() == "after the migrations\n"


def test_records_of_the_migrations_are_captured(caplog: pytest.LogCaptureFixture) -> None:
    migrate_database(lambda _uri: LOGGER.error("table people exists"), URI)
    assert "table people exists" in caplog.text


def test_directory_that_is_gone_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    migrate_database(lambda _uri: os.chdir(tmp_path), URI)
    assert Path.cwd() == tmp_path


def test_thread_that_cannot_set_signal_handlers_can_migrate() -> None:
    before = dict(os.environ)

    def migrate(_uri: ConnectionUri) -> None:
        os.environ["NEW"] = "1"

    thread = threading.Thread(target=migrate_database, args=(migrate, URI))
    thread.start()
    thread.join()
    assert dict(os.environ) == before


DJANGO = """
from neonctl_async import ConnectionUri
from pytest_neonctl_async.migrations import migrate_database

URI = ConnectionUri("postgresql://somebody:sesame@127.0.0.1/neondb")
SQLITE = "django.db.backends.sqlite3"

def configure():
    from django.conf import settings
    settings.configure(
        USE_TZ=True,
        INSTALLED_APPS=["django.contrib.contenttypes"],
        DATABASES={name: {"ENGINE": SQLITE, "NAME": ":memory:"} for name in ("default", "other")},
    )
    import django
    django.setup()

def migrate(uri):
    from django.conf import settings
    from django.db import connections
    if not settings.configured:
        configure()
    settings.USE_TZ = False
    settings.NEW = True
    settings.INSTALLED_APPS.append("django.contrib.auth")
    settings.DATABASES["default"]["NAME"] = "migrated.db"
    with connections["default"].cursor() as cursor:
        cursor.execute("CREATE TABLE people (name text)")
    with connections["other"].cursor() as cursor:
        cursor.execute("CREATE TABLE people (name text)")
"""

CONFIGURED = """
configure()
from django.conf import settings
from django.db import connections
assert settings.USE_TZ
before = settings._wrapped
if connected:
    with connections["other"].cursor() as cursor:
        cursor.execute("CREATE TABLE test (name text)")
migrate_database(migrate, URI)
assert settings._wrapped is before
assert settings.USE_TZ and not hasattr(settings, "NEW"), "settings"
assert settings.INSTALLED_APPS == ["django.contrib.contenttypes"], settings.INSTALLED_APPS
assert settings.DATABASES["default"]["NAME"] == ":memory:"
assert connections["default"].settings_dict["NAME"] == ":memory:"
assert connections["default"].connection is None
assert connections["default"].introspection.table_names() == []
tables = connections["other"].introspection.table_names()
assert tables == (["people", "test"] if connected else []), tables
"""

UNCONFIGURED = """
migrate_database(migrate, URI)
from django.conf import settings
from django.db import connections
assert not settings.configured
configure()
assert connections["default"].settings_dict["NAME"] == ":memory:"
assert connections["default"].introspection.table_names() == []
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "script",
    [
        f"connected = False{CONFIGURED}",
        f"connected = True{CONFIGURED}",
        UNCONFIGURED,
        f"import django.conf\n{UNCONFIGURED}",
        f"import django.db{UNCONFIGURED}",
    ],
)
def test_settings_and_connections_of_django_are_restored(script: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", DJANGO + script]
    subprocess.run(command, cwd=tmp_path, check=True)
