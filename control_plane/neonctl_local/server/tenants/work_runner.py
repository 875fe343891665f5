"""Runs the work that operations do on the real databases of one tenant."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, ParamSpec, TypeVar

from neonctl_local.clock import SECOND
from neonctl_local.engine import settlement, work
from neonctl_local.engine.work import Work
from neonctl_local.errors import StorageFullError
from neonctl_local.postgres.errors import ClusterError, PostgresUnavailableError
from neonctl_local.server.failure_log import FailureLog
from neonctl_local.storage.database import Database
from neonctl_local.storage.tables import Operation
from neonctl_local.storage.transactions import Transaction

P = ParamSpec("P")
T = TypeVar("T")

RETRY_DELAY: Final = 0.5
"""The seconds until a failed transaction is repeated. The delay doubles with each failure."""
MAX_RETRY_DELAY: Final = 30.0
"""The longest time until a failed transaction is repeated, in seconds."""
_SHORTEST: Final = 0.005
"""The shortest time between two checks of planned work, in seconds."""
_logger = logging.getLogger(__name__)


class WorkRunner:
    """Does unfinished work as soon as it may start, then settles its operation.

    ``perform`` does the work. Unfinished work stays in the database, and is done again at the next
    start of the control plane, so all work is idempotent.
    """

    def __init__(self, database: Database, perform: Callable[[Work], Awaitable[None]]) -> None:
        self._database: Final = database
        self._perform: Final = perform
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._starter: asyncio.Task[None] | None = None
        self._woken: Final = asyncio.Event()
        self._changed = asyncio.Event()
        message = "the operations cannot be stored: the server tries again"
        self._failures: Final = FailureLog(_logger, message)

    def start(self) -> None:
        """Start with the work that an earlier run of the control plane did not finish."""
        self._starter = asyncio.create_task(self._start_ready_work())
        self._notify()

    async def stop(self) -> None:
        """Cancel all work. It stays unfinished."""
        tasks = [task for task in (self._starter, *self._tasks.values()) if task is not None]
        self._starter = None
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:  # a cancellation is raised when all tasks have ended
            self._tasks.clear()

    def wake(self) -> None:
        """Check for new work."""
        self._woken.set()

    @property
    def changed(self) -> asyncio.Event:
        """An event that is set when the next operation settles, or when the runner starts.

        Before a start, a reset can have removed the operations that somebody is waiting for.
        """
        return self._changed

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _start_ready_work(self) -> None:
        while True:
            running = {*self._tasks}
            ready, delay = await self._repeat(self._database.read, _ready)
            for operation in ready:
                # Work may have ended, and its operation settled, since the read began.
                if operation.id not in running:
                    task = asyncio.create_task(self._run(operation))
                    if not task.done():  # an eager task can be done before it is returned
                        self._tasks[operation.id] = task
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._woken.wait()
            self._woken.clear()

    async def _run(self, operation: Operation) -> None:
        error: str | None = None
        try:
            await self._perform(work.of(operation))
        except (ClusterError, PostgresUnavailableError, StorageFullError) as failure:
            error = str(failure)
        except Exception:
            _logger.exception("the work of operation %s failed", operation.id)
            error = "internal error of the local control plane: see its log"
        # The end of a deletion may need the reserve of a full disk.
        await self._repeat(self._database.spend, settlement.settle, operation.id, error)
        self._tasks.pop(operation.id, None)
        self._notify()
        self._woken.set()

    async def _repeat(
        self, transact: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a transaction. Repeat it until it succeeds, for example while the disk is full.

        Of several failures in a row, only the first is logged, whichever operations they concern.
        The delays grow, because some failures last long.
        """
        delay = RETRY_DELAY
        while True:
            with self._failures:
                return await transact(*args, **kwargs)
            await asyncio.sleep(delay)
            delay = min(2 * delay, MAX_RETRY_DELAY)


def _ready(tx: Transaction) -> tuple[list[Operation], float | None]:
    """Return the operations whose work may start, and the seconds until the next planned start."""
    planned = work.next_start(tx)
    delay = None if planned is None else max(_SHORTEST, (planned - tx.now) / SECOND)
    return work.ready(tx), delay
