"""Ctrl-C, even a repeated one, without a traceback."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from neonctl_async.cli.streams import INTERRUPTED

PATIENCE: Final = 0.5
"""How long another Ctrl-C is ignored, in seconds, because the command is already stopping."""


def run_interruptible(
    main: Coroutine[Any, Any, None], last: Callable[[], object] = lambda: None
) -> None:
    """Run a coroutine as asyncio.run() does. Ctrl-C cancels it; a later Ctrl-C exits at once.

    asyncio would raise KeyboardInterrupt in the task that happens to run, and log a traceback.
    ``last`` is called before the exit. A process that already ignores Ctrl-C keeps ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        asyncio.run(main)
        return
    cancel: Callable[[], object] | None = None
    first: float | None = None

    async def run() -> None:
        nonlocal cancel
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        cancel = lambda: loop.call_soon_threadsafe(task.cancel)  # noqa: E731 - a name for a closure
        await main

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal first
        if cancel is None:
            raise KeyboardInterrupt
        if first is None:
            first = time.monotonic()
            with suppress(RuntimeError):  # the loop has just been closed
                cancel()
        elif time.monotonic() - first >= PATIENCE:
            last()
            os._exit(INTERRUPTED)

    signal.signal(signal.SIGINT, interrupt)
    try:
        asyncio.run(run())
    finally:
        main.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)
