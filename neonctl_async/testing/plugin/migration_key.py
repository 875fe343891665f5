"""The key of migrations: a hash of the code that runs and of the files that it reads."""

import hashlib
import inspect
import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from neonctl_async.testing.plugin.migrations import CachedMigrations, Migrate

if TYPE_CHECKING:
    from alembic.config import Config


def migration_key(migrations: CachedMigrations, base: Path) -> str:
    """Return a SHA-256 in hexadecimal, which changes with every byte of the files and values.

    The file that defines the function is one of them. Relative paths are relative to ``base``.
    The place of a file does not matter, so that two clones of a project have the same key.

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
    """Return the files of Alembic: its configuration file, ``env.py`` and all revisions."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - only users of Alembic have it

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
    """Yield the files in a folder and its subfolders, except what Python compiles. Follow links."""
    if (real := os.path.realpath(folder)) in seen:
        return
    seen.add(real)
    for path in folder.iterdir():
        if path.is_dir():
            if path.name != "__pycache__":
                yield from _files_below(path, seen)
        elif path.is_file() and path.suffix != ".pyc":
            yield path
