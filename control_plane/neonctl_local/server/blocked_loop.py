"""Reports code that blocks the server's event loop while a client is waiting."""

import asyncio
import os
import select
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

SECONDS: Final = 2.0
"""The interval of the checks, in seconds. A report takes two or three intervals."""

_MESSAGE: Final = (
    "a client waits for the local control plane, but this line blocks its event loop. Call "
    "blocking code with asyncio.to_thread(), use an async driver, or run the control plane in a "
    "process of its own: neonctl-async local"
)
_FOLDERS_OF_LIBRARIES: Final = (str(Path(os.__file__).parent), "site-packages")


class Listening(Protocol):
    """A listening socket."""

    def fileno(self) -> int:
        """Return the file descriptor."""
        ...


class BlockedLoopWatch:
    """A thread that warns once each time the event loop is blocked while a client is waiting.

    Create it on the loop that serves ``listening``, and close it before these sockets.
    """

    def __init__(self, listening: Sequence[Listening], seconds: float = SECONDS) -> None:
        self._descriptors = [one.fileno() for one in listening]
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="blocked-loop-watch", daemon=True)

    def start(self) -> None:
        """Start the thread. This blocks until the thread is running."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread. This blocks until it has ended."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        wait = self._closed.wait
        while not wait(self._seconds):
            if not self._is_client_waiting():
                continue
            ticks: list[bool] = []
            try:
                self._loop.call_soon_threadsafe(ticks.append, True)  # noqa: FBT003 - any value
            except RuntimeError:  # the loop was closed before the server
                return
            # Twice, because the first wait may end after a suspension of the whole process.
            if wait(self._seconds) or ticks or wait(self._seconds) or ticks:
                continue
            self._report()
            while not ticks and not wait(self._seconds):
                pass

    def _is_client_waiting(self) -> bool:
        """Return whether a socket has a connection that the loop has not accepted yet."""
        if sys.platform == "win32":
            return bool(select.select(self._descriptors, [], [], 0)[0])
        poll = select.poll()
        for descriptor in self._descriptors:
            poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def _report(self) -> None:
        """Warn about the line of the user's code that the thread of the loop is executing."""
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - documented, for debuggers
        lines = traceback.extract_stack(frame)
        own = [one for one in lines if not any(map(one.filename.count, _FOLDERS_OF_LIBRARIES))]
        line = (own or lines)[-1]
        warnings.warn_explicit(_MESSAGE, RuntimeWarning, line.filename, line.lineno or 0)
