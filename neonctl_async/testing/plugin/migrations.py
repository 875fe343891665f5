"""The user's step that prepares the database of which all branches of a test run are copies."""

import inspect
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, TypeAlias

from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.testing.plugin.background_loop import run_background_loop

Migrate: TypeAlias = Callable[[ConnectionUri], Awaitable[object] | object]
"""A function or coroutine function that gets a connection URI."""
RunOnce: TypeAlias = Callable[[Callable[[], str]], str]
"""Returns the result of a step, which one process of the test run performs."""


class Preparation(NamedTuple):
    """The migrations of a test run, and the function that runs them in one process only.

    With a ``key``, later test runs use their result. ``rebuilds`` ignores that of earlier ones.
    """

    migrate: Migrate | None
    run_once: RunOnce
    key: str | None = None
    rebuilds: bool = False


class CachedMigrations:
    """Migrations whose result later test runs use again, until a byte of ``files`` changes.

    Return this from the fixture ``neon_migrations``. ``files`` are the files and folders that
    ``migrate`` reads. The file that defines ``migrate`` is always one of them. Relative paths are
    relative to pytest's root directory. ``values`` are other things that change the result, for
    example versions and variables of the environment. At Neon, the migrations run in each test run.
    """

    def __init__(
        self,
        migrate: Migrate,
        files: Iterable[str | os.PathLike[str]],
        values: Iterable[str] = (),
    ) -> None:
        if not callable(migrate):
            raise TypeError(
                f"migrate is {migrate!r}: expected a function that gets a ConnectionUri"
            )
        if isinstance(files, str | os.PathLike):
            raise TypeError(f"files is {files!r}: expected a list of files and folders")
        self.migrate: Migrate = migrate
        self.files: tuple[str | os.PathLike[str], ...] = tuple(files)
        self.values: tuple[str, ...] = tuple(values)

    def __call__(self, connection_uri: ConnectionUri) -> Awaitable[object] | object:
        """Run the migrations."""
        return self.migrate(connection_uri)


def no_migrations(_connection_uri: ConnectionUri) -> None:
    """Leave the database empty. This is the value of a fixture that nobody has overridden."""


def check_migrations(value: object, *, has_databases: bool) -> Migrate | None:
    """Return the value of the fixture ``neon_migrations``, or None for the default.

    Raise TypeError if the value is not a function, and RuntimeError if it has no database to run
    in.
    """
    if value is no_migrations:
        return None
    if not callable(value):
        raise TypeError(
            f"the fixture neon_migrations returned {value!r}: expected a function that gets a "
            "ConnectionUri. End the fixture with a return of your function, for example "
            '"return migrate"'
        )
    if not has_databases:
        raise RuntimeError(
            "the fixture neon_migrations needs databases: set neon_postgres = true in pytest's "
            "configuration file, or run at Neon with --neon-cloud"
        )
    return value


def migrate_database(migrate: Migrate, connection_uri: ConnectionUri) -> None:
    """Call ``migrate`` in this thread. Run a coroutine on an event loop of its own."""
    result = migrate(connection_uri)
    if inspect.isawaitable(result):
        with run_background_loop() as loop:
            loop.call(_await(result))


async def _await(awaitable: Awaitable[object]) -> None:
    await awaitable
