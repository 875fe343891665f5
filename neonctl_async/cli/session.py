"""The client, the screen and the waits of one command."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import typer

from neonctl_async.cli.exits import ExitCode
from neonctl_async.cli.labels import is_pending, printable
from neonctl_async.cli.output import Output, Screen
from neonctl_async.models.operations import UNSUCCESSFUL, Operation, OperationRef
from neonctl_async.resources.names import Named, Wanted

if TYPE_CHECKING:
    from pathlib import Path

    from neonctl_async.client import NeonClient
    from neonctl_async.transport.calls import Deadline

T = TypeVar("T")
OnUpdate = Callable[[Operation], object]


class Search(NamedTuple):
    """A search by name."""

    wanted: Wanted
    matches: Callable[[], Awaitable[Sequence[Named]]]
    """Returns at least the records with this name or id."""
    sample: Callable[[], Awaitable[Sequence[Named]]]
    """Returns some records whose names may be suggested."""


class NameCache:
    """The names that a command has looked up, and the arguments that it used as ids."""

    def __init__(self) -> None:
        self.ids: dict[tuple[str, str], str] = {}
        self.assumed: dict[tuple[str, str], Search] = {}


class AwaitedOperations:
    """The operations of a wait: the latest record of each, or its reference."""

    def __init__(self, operations: Iterable[Operation | OperationRef] = ()) -> None:
        self._newest = {operation.ref: operation for operation in operations}

    def note(self, operation: Operation) -> None:
        """Store a newer record."""
        self._newest[operation.ref] = operation

    @property
    def records(self) -> list[Operation]:
        """The latest records, in the order of the operations."""
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
        """The operations that are not known to have finished."""
        return [
            ref
            for ref, newest in self._newest.items()
            if not isinstance(newest, Operation) or is_pending(newest)
        ]


def _refers_to(ref: OperationRef) -> tuple[str, str]:
    """Return the paths of the requests that read an operation: its project's list, and its own."""
    of_project = f"/projects/{ref.project_id}/operations"
    return of_project, f"{of_project}/{ref.id}"


class CommandSession:
    """The client and the screen of a command."""

    def __init__(self, screen: Screen, neon: "NeonClient") -> None:
        self.screen = screen
        self.neon = neon
        self.operations: AwaitedOperations = AwaitedOperations()
        """The operations of the last wait."""
        self.resumed: Path | None = None
        """The file in which an earlier command listed the operations to wait for."""
        self.waited: bool = False
        self.names: NameCache = NameCache()
        self.context_file: str | None = None
        self.yes: bool = False
        self._confirmed: set[str] = set()

    @property
    def asks(self) -> bool:
        """True if the user is asked for confirmation: on a terminal, without ``--yes``."""
        return not self.yes and sys.stdin.isatty()

    async def confirm(self, question: str) -> None:
        """Ask for confirmation, once. Exit if the user declines; do nothing in a script."""
        if not self.asks or question in self._confirmed:
            return
        # typer.confirm() would write a space to standard output.
        sys.stderr.write(f"{printable(question)} [y/N]: ")
        sys.stderr.flush()
        if (await read_line()).strip().lower() not in {"y", "yes"}:
            self.screen.print_message("nothing was changed")
            raise typer.Exit(ExitCode.INTERRUPTED)
        self._confirmed.add(question)

    async def send(self, request: Awaitable[T]) -> T:
        """Send a request that changes something. Print a warning if it is interrupted."""
        try:
            response = await request
        except asyncio.CancelledError:
            self.screen.print_message("the request was in progress: Neon may have executed it")
            raise
        self.names.assumed.clear()  # the command must not run again
        return response

    async def wait(
        self,
        operations: Sequence[Operation | OperationRef],
        *,
        timeout: float,
        on_update: OnUpdate | None = None,
    ) -> "Deadline":
        """Wait for operations and store their latest records in ``operations``.

        ``on_update`` receives each record; without it, a live display shows the progress. Return
        the deadline, for a wait that follows.
        """
        from neonctl_async.transport.calls import Deadline

        if not operations:
            return Deadline(timeout)
        self.operations = AwaitedOperations(operations)
        self.waited = True
        display = await self.display(on_update)
        deadline = Deadline(timeout)
        with display as show:

            def note(operation: Operation) -> None:
                self.operations.note(operation)
                show(operation)

            await self.neon.operations.wait(operations, timeout=timeout, on_update=note)
        deadline.extend_if_missed()
        return deadline

    async def display(self, on_update: OnUpdate | None = None) -> AbstractContextManager[OnUpdate]:
        """Return a context manager that yields a wait's callback. Scripts see no progress."""
        if on_update is not None:
            return nullcontext(on_update)
        if self.screen.output is Output.TABLE or sys.stderr.isatty():
            # In a thread, because it is slow: the module imports rich.
            await asyncio.to_thread(import_module, "neonctl_async.progress")
            from neonctl_async.progress import WaitProgress

            return WaitProgress(self.neon, console=self.screen.errors)
        return nullcontext(lambda _operation: None)


async def read_line() -> str:
    """Read a line from the terminal. Ctrl-C interrupts the wait for it."""
    loop = asyncio.get_running_loop()
    is_readable = asyncio.Event()
    try:
        loop.add_reader(sys.stdin, is_readable.set)
    except NotImplementedError:  # on Windows
        return await asyncio.to_thread(sys.stdin.readline)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(sys.stdin)
    return await asyncio.to_thread(sys.stdin.readline)
