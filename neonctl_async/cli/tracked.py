"""What a wait that did not end well leaves to be waited for."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from neonctl_async.cli.labels import is_pending
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting.status import UNSUCCESSFUL


class References(NamedTuple):
    """References to operations, as a file holds them: a line of JSON each."""

    operations: Sequence[OperationRef]


class TrackedOperations:
    """Operations that are waited for: of each the newest record, else the reference."""

    def __init__(self, operations: Iterable[Operation | OperationRef] = ()) -> None:
        self._newest = {operation.ref: operation for operation in operations}

    def note(self, operation: Operation) -> None:
        """Take in a record."""
        self._newest[operation.ref] = operation

    @property
    def records(self) -> list[Operation]:
        """The newest records, in the order given."""
        return [one for one in self._newest.values() if isinstance(one, Operation)]

    def drop_missing(self, path: str) -> None:
        """Leave out what the platform does not know: the answer to ``path`` was a 404."""
        self._newest = {
            ref: newest for ref, newest in self._newest.items() if path not in _refers_to(ref)
        }

    @property
    def failed(self) -> list[Operation]:
        """Those that have ended unsuccessfully."""
        return [one for one in self.records if one.status in UNSUCCESSFUL and not is_pending(one)]

    @property
    def pending(self) -> list[OperationRef]:
        """What has not ended, as far as is known."""
        return [
            ref
            for ref, newest in self._newest.items()
            if not isinstance(newest, Operation) or is_pending(newest)
        ]


def _refers_to(ref: OperationRef) -> tuple[str, str]:
    """The paths that an operation is read at, with others or alone."""
    of_project = f"/projects/{ref.project_id}/operations"
    return of_project, f"{of_project}/{ref.id}"


def written(operations: Sequence[OperationRef]) -> Path:
    """The new file, in the current directory, that references were written to.

    It is never one that is there already. Raises OSError where it cannot be written, and leaves
    none that is torn.
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
    """The references in the lines of a file. Operations as ``--output jsonl`` prints them will do.

    Raises ValueError, naming the line, for anything else.
    """
    found: list[OperationRef] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(msgspec.json.decode(line, type=OperationRef))
            except msgspec.DecodeError as error:
                raise ValueError(
                    f"line {number} is no reference to an operation: {error}"
                ) from None
    return References(found)
