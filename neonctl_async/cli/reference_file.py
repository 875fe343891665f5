"""The file of references to operations, from which an unfinished wait is resumed."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from neonctl_async.models.operations import OperationRef

_FILE_NAME = "neonctl-async-pending-{}.jsonl"


class References(NamedTuple):
    """References to operations from a file with one JSON object per line."""

    operations: Sequence[OperationRef]
    written: Path | None = None
    """The file, if a command wrote it.

    It is replaced as operations finish, and removed once all have finished.
    """


class _Reference(OperationRef, forbid_unknown_fields=True):
    """A reference to an operation, without any other fields."""


class _Operation(OperationRef, kw_only=True):
    """The record of an operation. The records of branches and computes have no action."""

    action: str


_KINDS: Final[Sequence[type[OperationRef]]] = (_Reference, _Operation)


class _Record(msgspec.Struct):
    """A record of a call that started operations."""

    operations: list[OperationRef]


def write(operations: Sequence[OperationRef], path: Path | None = None) -> Path:
    """Write references to a file and return its path. Raises OSError if writing fails.

    ``path`` is replaced atomically. If it is None, a new file in the current directory is written,
    and removed if writing fails.
    """
    lines = msgspec.json.Encoder().encode_lines(operations)
    if path is not None:
        part = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            part.write_bytes(lines)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return path
    path = _new_file()
    try:
        path.write_bytes(lines)
    except OSError:
        path.unlink()
        raise
    return path


def _new_file() -> Path:
    number = 1
    while True:
        path = Path(_FILE_NAME.format(number))
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return path


def read(path: Path) -> References:
    """Read a file of references. Raises OSError or ValueError if the file cannot be used."""
    with path.open(encoding="utf-8") as lines:
        references = parse(lines)
    return (
        references._replace(written=path)
        if fnmatch(path.name, _FILE_NAME.format("*"))
        else references
    )


def parse(lines: Iterable[str]) -> References:
    """Parse the lines of a file: references, or records as ``--output jsonl`` prints them.

    A record is an operation, or the record of a call that started operations. Raises ValueError
    with the line number for any other line.
    """
    found: list[OperationRef] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            found += _references(line, number)
    return References(found)


def _references(line: str, number: int) -> Sequence[OperationRef]:
    for kind in _KINDS:
        with suppress(msgspec.DecodeError):
            found = msgspec.json.decode(line, type=kind)
            return [OperationRef(project_id=found.project_id, id=found.id)]
    try:
        return msgspec.json.decode(line, type=_Record).operations
    except msgspec.DecodeError as error:
        raise ValueError(
            f"line {number} is not a reference to an operation, and has no operations: {error}; "
            "expected lines of --output jsonl"
        ) from None
