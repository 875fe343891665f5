"""A command that runs as a child process and receives this process's signals."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

_RELAYED: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_OF_TERMINALS: Final = frozenset({"SIGINT", "SIGHUP"})
"""The signals that a terminal sends to this process and to the command."""


class SignalRelay:
    """Passes signals to a command while it runs, and cancels the current task otherwise.

    Calls ``on_cancel`` after the first cancellation, because the task may take a while to clean up.
    Signals that this process ignores stay ignored, in the command too. The handlers stay until the
    event loop is closed.
    """

    def __init__(self, on_cancel: Callable[[], None]) -> None:
        self._on_cancel: Callable[[], None] | None = on_cancel
        self._task = asyncio.current_task()
        self._process: asyncio.subprocess.Process | None = None
        self._is_starting = False
        self._early: list[signal.Signals] = []
        loop = asyncio.get_running_loop()
        for number in _RELAYED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                with suppress(NotImplementedError):  # on Windows, where both get a Ctrl-C
                    loop.add_signal_handler(number, self._receive, number)

    async def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run a command. Return its exit status, or 128 plus the signal that killed it.

        Raises OSError if the command cannot be started.
        """
        self._is_starting = True
        try:
            self._process = await asyncio.create_subprocess_exec(*arguments, env=environment)
        finally:
            self._is_starting = False
        for number in self._early:
            self._process.send_signal(number)
        try:
            status = await self._process.wait()
        except asyncio.CancelledError:
            self._process.terminate()
            await self._process.wait()
            raise
        finally:
            self._process = None
        return status if status >= 0 else 128 - status

    def _receive(self, number: signal.Signals) -> None:
        if self._is_starting:
            self._early.append(number)
        elif self._process is None:
            if self._task is not None:
                self._task.cancel()
            on_cancel, self._on_cancel = self._on_cancel, None
            if on_cancel is not None:
                with suppress(OSError):  # the terminal may be closed
                    on_cancel()
        elif not (number.name in _OF_TERMINALS and _is_in_foreground()):
            self._process.send_signal(number)


def _is_in_foreground() -> bool:
    """Return whether the terminal sends its signals to this process, and so to its children."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
