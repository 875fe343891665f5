"""Runs the benchmarks and prints what they found; ends with 1 where a target is missed.

A run of everything writes docs/benchmarks.json, and from it the table and the picture.
"""

import argparse
import asyncio
import datetime as dt
import inspect
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from benchmarks.harness.machine import machine, versions
from benchmarks.harness.report import Report, plain, write
from benchmarks.harness.results import Row
from benchmarks.harness.run_size import Effort
from benchmarks.scenarios import (
    fan_out,
    get,
    idle,
    imports,
    memory,
    operations_page,
    page,
    paging,
    pytest_plugin,
    scale,
    single_operation,
    waits,
)

Group = Callable[[Effort], Awaitable[list[Row]] | list[Row]]

GROUPS: dict[str, Group] = {
    "get": get.run,
    "page": page.run,
    "paging": paging.run,
    "imports": imports.run,
    "memory": memory.run,
    "idle": idle.run,
    "waits": waits.run,
    "single_operation": single_operation.run,
    "fan_out": fan_out.run,
    "scale": scale.run,
    "operations_page": operations_page.run,
    "pytest_plugin": pytest_plugin.run,
}
ROOT = Path(__file__).parent.parent


def run(group: Group, effort: Effort) -> list[Row]:
    """The rows of a group, which runs on a loop of its own."""
    rows = group(effort)
    return rows if isinstance(rows, list) else asyncio.run(_all(rows))


async def _all(rows: Awaitable[list[Row]]) -> list[Row]:
    return await rows


def run_all(names: Iterable[str], effort: Effort) -> list[Row]:
    """The rows of these groups, printed as they come."""
    found: list[Row] = []
    for name in names:
        began = time.monotonic()
        rows = run(GROUPS[name], effort)
        print(f"{name}, {time.monotonic() - began:.0f} s\n\n{plain(rows)}\n", flush=True)
        found += rows
    return found


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs of each")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=GROUPS, help="these groups")
    parser.add_argument("--list", action="store_true", help="what groups there are")
    parser.add_argument("--write", action="store_true", help="write into docs even so")
    return parser.parse_args()


def main() -> int:
    """Run the benchmarks; answers 1 where a target is missed."""
    given = arguments()
    if given.list:
        for name, group in GROUPS.items():
            print(f"{name:16} {(inspect.getdoc(inspect.getmodule(group)) or '').splitlines()[0]}")
        return 0
    effort = Effort.QUICK if given.quick else Effort.THOROUGH
    rows = run_all(given.only or GROUPS, effort)
    if given.write or not (given.quick or given.only):
        today = dt.datetime.now(dt.UTC).date().isoformat()
        write(Report(date=today, machine=machine(), versions=versions(), rows=rows), ROOT)
    missed = [row for row in rows if row.met is False]
    for row in missed:
        print(f"MISSED: {row.scenario}, {row.measure}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
