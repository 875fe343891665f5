"""Ctrl-C, also repeated."""

import signal
import sys
from contextlib import suppress
from subprocess import TimeoutExpired

import pytest

from tests.cli.process import ended, started

PROGRAM = """
import asyncio, time
from neonctl_async.cli.interrupts import run_interruptible
from neonctl_async.cli.streams import exit_with

async def busy():
    while True:
        await asyncio.sleep(0)

async def main():
    task = asyncio.create_task(busy())
    print("working", flush=True)
    try:
        await asyncio.sleep(600)
    finally:
        print("stopping", flush=True)
        {cleanup}

exit_with(lambda: run_interruptible(main(), lambda: print("last", flush=True)))
"""


@pytest.mark.parametrize(
    "cleanup",
    ["await asyncio.sleep(600)", "time.sleep(600)", "await asyncio.to_thread(time.sleep, 600)"],
)
@pytest.mark.usefixtures("interruptible")
@pytest.mark.process
def test_repeated_interrupt_ends_the_program_without_a_traceback(cleanup: str) -> None:
    with started(sys.executable, "-c", PROGRAM.format(cleanup=cleanup)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopping\n"
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(TimeoutExpired):
                process.wait(0.1)
        assert ended(process) == ("last\n", "", 130)
