"""The user's migrations, which prepare the database that all branches of a test run copy.

The key of cached migrations is a hash of the code that runs and of the files that it reads.
"""

import hashlib
import inspect
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from neonctl_async import ConnectionUri
from pytest_neonctl_async.background_loop import run_background_loop
from pytest_neonctl_async.once import Step
from pytest_neonctl_async.process_state import unchanged_process

if TYPE_CHECKING:
    from alembic.config import Config

Migrate: TypeAlias = Callable[[ConnectionUri], Awaitable[object] | object]
"""A function or coroutine function that gets a connection URI."""
RunOnce: TypeAlias = Callable[[Step], str]
"""Returns the result of a step. Only one process of the test run performs the step."""


class Preparation(NamedTuple):
    """The migrations of a test run, and the function that runs them in one process only.

    With a ``key``, later test runs use their result. With ``rebuilds``, results of earlier test
    runs are ignored. With ``is_alone``, no other process of this test run uses the result.
    """

    migrate: Migrate | None
    run_once: RunOnce
    key: str | None = None
    rebuilds: bool = False
    is_alone: bool = False


class CachedMigrations:
    """Migrations whose result later test runs reuse, until a byte of ``files`` changes.

    Return an instance from the ``neon_migrations`` fixture. ``files`` are the files and folders
    that ``migrate`` reads. The file that defines ``migrate`` is always one of them. Relative paths
    are relative to pytest's root directory. ``values`` are other things that change the result, for
    example versions and environment variables. On Neon, the migrations run in each test run.
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
    """Leave the database empty: the default of ``neon_migrations``."""


def check_migrations(value: object, *, has_databases: bool) -> Migrate | None:
    """Return the value of the ``neon_migrations`` fixture, or None for the default.

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
            "configuration file, or run against Neon with --neon-cloud"
        )
    return value


def migrate_database(migrate: Migrate, connection_uri: ConnectionUri) -> None:
    """Call ``migrate`` in this thread. Run a coroutine on an event loop of its own.

    Afterwards, the process is as before, so tests behave as if the migrations had run in another
    process, or in an earlier test run.
    """
    with unchanged_process():
        result = migrate(connection_uri)
        if inspect.isawaitable(result):
            with run_background_loop() as loop:
                loop.call(_await(result))


async def _await(awaitable: Awaitable[object]) -> None:
    await awaitable


def migration_key(migrations: CachedMigrations, base: Path) -> str:
    """Return a hexadecimal SHA-256 hash, which changes with any byte of the files or values.

    The file that defines the function is one of the files. Relative paths are relative to ``base``.
    The location of a file does not matter, so two clones of a project have the same key.

    Raise FileNotFoundError if one of the paths does not exist.
    """
    total = hashlib.sha256()
    for name, file in _contents(migrations, base):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        total.update(f"{len(name)} {name} {digest}\n".encode(errors="surrogateescape"))
    for value in migrations.values:
        total.update(f"{len(value)} {value}\n".encode(errors="surrogateescape"))
    return total.hexdigest()


def alembic_files(config: "Config") -> list[Path]:
    """Return Alembic's files: its configuration file, ``env.py`` and all revisions."""
    from alembic.script import ScriptDirectory

    script = ScriptDirectory.from_config(config)
    files = [Path(script.dir), *map(Path, script.version_locations or ())]
    if config.config_file_name is not None:
        files.append(Path(config.config_file_name))
    return files


def _contents(migrations: CachedMigrations, base: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files, each with a name that does not depend on where the project is."""
    function = _function(migrations.migrate)
    yield from _source(function)
    for number, path in enumerate(migrations.files):
        top = base / path
        if top.is_dir():
            for file in sorted(_files_below(top, set())):
                yield f"{number}/{file.relative_to(top).as_posix()}", file
        elif top.exists():
            yield f"{number}", top
        else:
            raise FileNotFoundError(
                f"the file {os.fspath(path)!r} of CachedMigrations does not exist: expected a file "
                f"or a folder, and {str(base)!r} is the base of relative paths"
            )


def _function(migrate: Migrate) -> object:
    """Return the user's function, without the partial() and decorators around it."""
    function: object = migrate
    while isinstance(function, partial):
        function = function.func
    return inspect.unwrap(function) if callable(function) else function


def _source(function: object) -> Iterator[tuple[str, Path]]:
    """Yield the file that defines a function, or the class of a callable object."""
    code = function if inspect.isroutine(function) else type(function)
    try:
        file = inspect.getsourcefile(code)
    except TypeError:  # built in
        return
    if file is not None and Path(file).is_file():
        yield getattr(code, "__qualname__", ""), Path(file)


def _files_below(folder: Path, seen: set[str]) -> Iterable[Path]:
    """Yield the files in a folder and its subfolders, except bytecode. Follow links."""
    if (real := os.path.realpath(folder)) in seen:
        return
    seen.add(real)
    for path in folder.iterdir():
        if path.is_dir():
            if path.name != "__pycache__":
                yield from _files_below(path, seen)
        elif path.is_file() and path.suffix != ".pyc":
            yield path
