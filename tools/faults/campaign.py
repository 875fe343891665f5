"""A fault campaign: its parts, one after another, and what each of them leaves open."""

import asyncio
import gc
import random
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from pathlib import Path
from typing import NamedTuple

from neonctl_async.testing import FakeClockLoop
from tools.faults import databases, deadlines, forks, kept_connections, mixed, outages
from tools.faults.clocks import SuspendableLoop
from tools.faults.report import Report

NAMES = (
    *mixed.NAMES,
    *outages.OUTAGES,
    *kept_connections.CLOSED,
    forks.FORKED,
    deadlines.SPREAD,
    *databases.DATABASES,
)
"""The faults that a campaign can inject."""

SHARE_OF_DATABASES = 40
"""The mixed faults for each fault with databases, which take longer."""

Inject = Callable[[Report, Collection[str], random.Random, Path], Coroutine[None, None, None]]


class Part(NamedTuple):
    """A part of a campaign, which injects some of its faults."""

    faults: Collection[str]
    inject: Inject
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop


def run(
    faults: int,
    seed: int,
    directory: Path,
    seconds_between_kills: float,
    names: Collection[str] = NAMES,
) -> Report:
    """Run a campaign. ``faults`` is the number of mixed faults, without those of databases."""
    inject = partial(mixed.inject, faults=faults, seconds_between_kills=seconds_between_kills)
    inject_into_databases = partial(databases.inject, faults=faults // SHARE_OF_DATABASES)
    report = Report()
    for part in (
        Part(mixed.NAMES, inject, SuspendableLoop),
        Part(outages.OUTAGES, outages.inject, FakeClockLoop),
        Part(kept_connections.CLOSED, kept_connections.inject),
        Part([forks.FORKED], forks.inject),
        Part([deadlines.SPREAD], deadlines.inject, FakeClockLoop),
        Part(databases.DATABASES, inject_into_databases),
    ):
        if wanted := [name for name in part.faults if name in names]:
            before = open_files()
            with asyncio.Runner(loop_factory=part.loop_factory) as runner:
                chance = random.Random(seed)
                runner.run(_and_end(part.inject(report, wanted, chance, directory), report))
            gc.collect()
            if (more := open_files() - before) > 0:
                report.violations.append(f"{more} files or connections are still open")
    return report


async def _and_end(part: Coroutine[None, None, None], report: Report) -> None:
    await part
    left = asyncio.all_tasks() - {asyncio.current_task()}
    report.violations += [f"a task is still running: {task}" for task in left]


def open_files() -> int:
    """Return the number of open files and connections, or 0 if the system does not report it."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return 0
