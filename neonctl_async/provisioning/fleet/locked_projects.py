"""Repeat work that the lock of a project rejects, as long as the project makes progress."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from neonctl_async.errors import LockedError

T = TypeVar("T")

MAX_SECONDS: Final = 300.0
"""The longest time in which a locked project makes no progress, in seconds."""
PAUSE: Final = 1.0
"""Seconds before the next attempt."""


class LockedProjects:
    """The projects of a run that Neon may lock (423) while it creates a branch.

    The client repeats a rejected request for the time of its retry policy. A fleet needs longer:
    if Neon creates one branch after another, the last tenant of a project waits for all others.
    """

    def __init__(self) -> None:
        self._progress: dict[str, float] = {}
        """The time of the last success in each project."""

    async def repeat(self, project_id: str, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of ``work``. Repeat it while the project is locked.

        Raises LockedError if no work in the project has succeeded for ``MAX_SECONDS``.
        """
        time = asyncio.get_running_loop().time
        started = time()
        while True:
            try:
                result = await work()
            except LockedError:
                progress = max(started, self._progress.get(project_id, started))
                if time() - progress >= MAX_SECONDS:
                    raise
                await asyncio.sleep(PAUSE)
            else:
                self._progress[project_id] = time()
                return result
