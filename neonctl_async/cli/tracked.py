"""The operations that a command waits for, and the file that resumes an unfinished wait."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from neonctl_async.cli.labels import is_pending
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting.status import UNSUCCESSFUL


class References(NamedTuple):
    """References to operations from a file with one JSON object per line."""

    operations: Sequence[OperationRef]


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


def write(operations: Sequence[OperationRef]) -> Path:
    """Write references to a new file in the current directory and return its path.

    Never overwrites a file. Raises OSError and removes the file if writing fails.
    """
    path = _new_file()
    try:
        path.write_bytes(msgspec.json.Encoder().encode_lines(operations))
    except OSError:
        path.unlink()
        raise
    return path


def _new_file() -> Path:
    number = 1
    while True:
        path = Path(f"neonctl-async-pending-{number}.jsonl")
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return path


def parse(lines: Iterable[str]) -> References:
    """Parse the lines of a file: references, or operations as ``--output jsonl`` prints them.

    Raises ValueError with the line number for any other line.
    """
    found: list[OperationRef] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(msgspec.json.decode(line, type=OperationRef))
            except msgspec.DecodeError as error:
                raise ValueError(
                    f"line {number} is not a reference to an operation: {error}"
                ) from None
    return References(found)
