"""The operations that a command waits for, and the file that resumes an unfinished wait."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from neonctl_async.cli.labels import is_pending
from neonctl_async.models.operations import UNSUCCESSFUL, Operation, OperationRef

_FILE_NAME = "neonctl-async-pending-{}.jsonl"


class References(NamedTuple):
    """References to operations from a file with one JSON object per line."""

    operations: Sequence[OperationRef]
    written: Path | None = None
    """The file, if a command wrote it. It is replaced, or removed when all have finished."""


class _Reference(OperationRef, forbid_unknown_fields=True):
    """A reference to an operation, without further fields."""


class _Operation(OperationRef, kw_only=True):
    """The record of an operation. The records of branches and computes have no action."""

    action: str


_KINDS: Final[Sequence[type[OperationRef]]] = (_Reference, _Operation)


class _Record(msgspec.Struct):
    """A record of a call that started operations."""

    operations: list[OperationRef]


class TrackedOperations:
    """The operations of a wait: the newest record of each, or its reference."""

    def __init__(self, operations: Iterable[Operation | OperationRef] = ()) -> None:
        self._newest = {operation.ref: operation for operation in operations}

    def note(self, operation: Operation) -> None:
        """Store a newer record."""
        self._newest[operation.ref] = operation

    @property
    def records(self) -> list[Operation]:
        """The newest records, in the order of the operations."""
        return [one for one in self._newest.values() if isinstance(one, Operation)]

    def drop_missing(self, path: str) -> None:
        """Remove the operations that a request to ``path`` reported as missing (404)."""
        self._newest = {
            ref: newest for ref, newest in self._newest.items() if path not in _refers_to(ref)
        }

    @property
    def failed(self) -> list[Operation]:
        """The operations that failed."""
        return [one for one in self.records if one.status in UNSUCCESSFUL and not is_pending(one)]

    @property
    def pending(self) -> list[OperationRef]:
        """The operations that have not finished, as far as is known."""
        return [
            ref
            for ref, newest in self._newest.items()
            if not isinstance(newest, Operation) or is_pending(newest)
        ]


def _refers_to(ref: OperationRef) -> tuple[str, str]:
    """Return the paths of the requests that read an operation: the list, and the operation."""
    of_project = f"/projects/{ref.project_id}/operations"
    return of_project, f"{of_project}/{ref.id}"


def write(operations: Sequence[OperationRef], path: Path | None = None) -> Path:
    """Write references to a file and return its path. Raises OSError if writing fails.

    ``path`` is replaced as a whole. For None, it is a new file in the current directory, which is
    removed if writing fails.
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
