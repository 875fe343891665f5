"""Watches projects for changes that their open pages must show.

One task watches each project that somebody has open. It observes the project after each write, and
when an operation changes by itself. It also runs the background work that is due, so people see,
for example, that an idle compute is suspended. Watching a project neither wakes it nor keeps it
from being detached.
"""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from neonctl_local.clock import SECOND, Instant
from neonctl_local.engine import background, watching
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.storage.tables import Project
from neonctl_local.storage.transactions import Transaction

GAP: Final = 0.1
"""The shortest time between two observations of a project, in seconds."""
LONGEST_SLEEP: Final = 60.0
"""The seconds after which a watcher reads the wall clock again, in case it was changed."""
POLL: Final = 1.0
"""The seconds between two reads of a clock that a test or another program controls."""
RETRY_DELAY: Final = 1.0
"""The seconds until a failed observation is repeated. The delay doubles with each failure."""
MAX_RETRY_DELAY: Final = 30.0
"""The longest time until a failed observation is repeated, in seconds."""

_Key = tuple[TenantState, str]

_logger: Final = logging.getLogger(__name__)


class Changes:
    """The watched projects of a server. Each has one task, which all of its viewers share."""

    def __init__(self) -> None:
        self._watched: dict[_Key, ProjectChanges] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return the number of watched projects."""
        return len(self._watched)

    @contextmanager
    def watch(self, state: TenantState, project_id: str) -> Generator["ProjectChanges", None, None]:
        """Watch a project of a tenant."""
        key = (state, project_id)
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = ProjectChanges(state, project_id)
            task = watched.task = asyncio.create_task(watched.run())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        watched.viewers += 1
        try:
            yield watched
        finally:
            watched.viewers -= 1
            if not watched.viewers:
                self._watched.pop(key, None)
                watched.task.cancel()

    async def close(self) -> None:
        """Stop all tasks."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class ProjectChanges:
    """The changes of one project. ``number`` is the number of changes so far."""

    task: asyncio.Task[None]

    def __init__(self, state: TenantState, project_id: str) -> None:
        self.number: int = 0
        self.viewers = 0
        self._state = state
        self._project_id = project_id
        self._seen: int | None = None
        self._changed = asyncio.Event()

    @property
    def changed(self) -> asyncio.Event:
        """An event that is set at the next change."""
        return self._changed

    async def run(self) -> None:
        """Watch the project, until the task is cancelled."""
        delay = RETRY_DELAY
        while True:
            written = self._state.database.changed
            try:
                changes_at = await self._observe()
            except Exception:
                if delay == RETRY_DELAY:
                    _logger.exception("the pages of project %s are not live now", self._project_id)
                await asyncio.sleep(delay)
                delay = min(2 * delay, MAX_RETRY_DELAY)
            else:
                delay = RETRY_DELAY
                await asyncio.sleep(GAP)
                await self._wait(written, changes_at)

    async def _observe(self) -> Instant | None:
        """Observe the project. Return the next time at which it changes without a request."""
        database = self._state.database
        observation = await database.read(watching.observe, self._project_id)
        if self._seen not in {None, observation.fingerprint}:
            self.number += 1
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()
        self._seen = observation.fingerprint
        if observation.is_due:
            await database.run(_catch_up, self._project_id)
            if self._state.databases is not None:
                self._state.databases.runner.wake()
        return observation.changes_at

    async def _wait(self, written: asyncio.Event, changes_at: Instant | None) -> None:
        """Wait for a write, or until ``changes_at`` on the clock of the local control plane."""
        longest = LONGEST_SLEEP if self._state.follows_wall_clock else POLL
        while not written.is_set():
            delay = None
            if changes_at is not None:
                left = (changes_at - self._state.now()) / SECOND
                if left <= 0:
                    return
                delay = min(left, longest) if self._state.follows_wall_clock else longest
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await written.wait()


def _catch_up(tx: Transaction, project_id: str) -> None:
    """Run the background work that is due, unless the project was deleted in the meantime."""
    if tx.first(Project, "WHERE id = ? AND deleted_at IS NULL", project_id) is not None:
        background.catch_up(tx, project_id)
