"""The client, the screen and the waits of one command."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from neonctl_async.cli import tracked
from neonctl_async.cli.output import Output, Screen
from neonctl_async.models.names import Named, Wanted
from neonctl_async.models.operations import Operation, OperationRef

if TYPE_CHECKING:
    from pathlib import Path

    from neonctl_async.client import NeonClient

T = TypeVar("T")
OnUpdate = Callable[[Operation], object]


class Search(NamedTuple):
    """A search for something by its name."""

    wanted: Wanted
    matches: Callable[[], Awaitable[Sequence[Named]]]
    """Returns the records whose name or id contains the text."""
    sample: Callable[[], Awaitable[Sequence[Named]]]
    """Returns some records, to suggest close names."""


class NameCache:
    """The names that a command has looked up, and the texts that it used as ids."""

    def __init__(self) -> None:
        self.ids: dict[tuple[str, str], str] = {}
        self.assumed: dict[tuple[str, str], Search] = {}


class CommandSession:
    """The client and the screen of a command."""

    def __init__(self, screen: Screen, neon: "NeonClient") -> None:
        self.screen = screen
        self.neon = neon
        self.tracked: tracked.TrackedOperations = tracked.TrackedOperations()
        self.resumed: Path | None = None
        """The file of an earlier command with the operations to wait for."""
        self.waited: bool = False
        self.names: NameCache = NameCache()
        self.context_file: str | None = None

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
    ) -> None:
        """Wait for operations and store their newest records in ``tracked``.

        ``on_update`` receives each record; without it, a live display shows the progress.
        """
        if not operations:
            return
        self.tracked = tracked.TrackedOperations(operations)
        self.waited = True
        with await self.display(on_update) as show:

            def note(operation: Operation) -> None:
                self.tracked.note(operation)
                show(operation)

            await self.neon.operations.wait(operations, timeout=timeout, on_update=note)

    async def display(self, on_update: OnUpdate | None = None) -> AbstractContextManager[OnUpdate]:
        """Return a context with the function that receives each record; scripts see nothing."""
        if on_update is not None:
            return nullcontext(on_update)
        if self.screen.output is Output.TABLE or sys.stderr.isatty():
            # In a thread, because it takes long: the module imports rich.
            await asyncio.to_thread(import_module, "neonctl_async.progress")
            from neonctl_async.progress import WaitProgress

            return WaitProgress(self.neon, console=self.screen.errors)
        return nullcontext(lambda _operation: None)
