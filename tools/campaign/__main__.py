"""Runs campaigns: ``python -m tools.campaign KIND...``. The exit status is 1 after a violation."""

import argparse
import asyncio
import gc
import logging
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tools.campaign import requests
from tools.campaign.clocks import SuspendableLoop
from tools.campaign.databases import campaign as databases
from tools.campaign.report import Report, Run


class Kind(NamedTuple):
    """A kind of campaign, with its default number of faults and pause between two kills."""

    faults: int
    pause: float
    inject: Callable[[Run], Coroutine[None, None, None]]
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop


def _databases(faults: int, mode: str, *, kills: bool) -> Kind:
    return Kind(faults, 0.7, partial(databases.inject, mode=mode, kills=kills))


KINDS = {
    "requests": Kind(10_000, 15.0, requests.inject, SuspendableLoop),
    "servers": Kind(10, 1.0, requests.kill_servers),
    **{f"databases{mode}": _databases(250, mode, kills=False) for mode in databases.MODES[1:]},
    **{f"kills{mode}": _databases(100, mode, kills=True) for mode in databases.MODES},
}


def main() -> int:
    """Run each kind with each seed; return 1 if any result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.campaign")
    parser.add_argument("kinds", nargs="+", choices=KINDS, metavar=f"{{{','.join(KINDS)}}}")
    parser.add_argument("--faults", type=int, help="faults or kills per seed")
    parser.add_argument("--pause", type=float, help="mean pause between two kills, in seconds")
    parser.add_argument("--seeds", type=int, nargs="+", default=[random.randrange(1_000_000)])
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="TEXT",
        help="inject only the faults of requests whose names contain one of these texts",
    )
    options = parser.parse_args()
    names = [name for name in requests.NAMES if any(text in name for text in options.only)]
    if not names:
        parser.error(f"--only is {options.only}: expected parts of {', '.join(requests.NAMES)}")
    logging.disable()
    violations = 0
    for seed in options.seeds:
        for name in options.kinds:
            kind = KINDS[name]
            # Postgres does not run as root: its account must be able to enter the directory.
            directory = Path(tempfile.mkdtemp(prefix="campaign-", dir="/tmp"))
            directory.chmod(0o711)
            faults, pause = options.faults or kind.faults, options.pause or kind.pause
            report = Report()
            run = Run(report, random.Random(seed), directory, faults, pause, names)
            before = _open_files()
            try:
                with asyncio.Runner(loop_factory=kind.loop_factory) as runner:
                    runner.run(_and_end(kind.inject(run), report))
            except KeyboardInterrupt:
                shutil.rmtree(directory)
                raise
            gc.collect()
            if (more := _open_files() - before) > 0:
                report.violations.append(f"{more} files or connections are still open")
            sys.stdout.write(f"{name}, seed {seed}\n")
            if report.violations:
                sys.stdout.write(f"the data and the logs are in {directory}\n")
            else:
                shutil.rmtree(directory)
            sys.stdout.writelines(f"{line}\n" for line in report.lines())
            sys.stdout.flush()
            violations += len(report.violations)
    return 1 if violations else 0


async def _and_end(injecting: Coroutine[None, None, None], report: Report) -> None:
    await injecting
    left = asyncio.all_tasks() - {asyncio.current_task()}
    report.violations += [f"a task is still running: {task}" for task in left]


def _open_files() -> int:
    """Return the number of open files and connections, or 0 if the system does not report it."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
