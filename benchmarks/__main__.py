"""Runs the benchmarks and prints the results. The exit status is 1 if a target is missed.

A complete run writes docs/benchmarks.json, and the tables and plots that show it.
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
from benchmarks.harness.run_size import RunSize
from benchmarks.scenarios import (
    database_proxy,
    database_suites,
    databases,
    fan_out,
    first_database,
    get,
    idle,
    imports,
    loads,
    many_databases,
    memory,
    operations_page,
    page,
    paging,
    pytest_plugin,
    scale,
    shared_budget,
    single_operation,
    waits,
)

Scenario = Callable[[RunSize], Awaitable[list[Row]] | list[Row]]

SCENARIOS: dict[str, Scenario] = {
    "get": get.run,
    "page": page.run,
    "paging": paging.run,
    "imports": imports.run,
    "memory": memory.run,
    "idle": idle.run,
    "waits": waits.run,
    "single_operation": single_operation.run,
    "fan_out": fan_out.run,
    "loads": loads.run,
    "scale": scale.run,
    "shared_budget": shared_budget.run,
    "operations_page": operations_page.run,
    "pytest_plugin": pytest_plugin.run,
    "databases": databases.run,
    "first_database": first_database.run,
    "many_databases": many_databases.run,
    "database_suites": database_suites.run,
    "database_proxy": database_proxy.run,
}
ROOT = Path(__file__).parent.parent


def run(scenario: Scenario, size: RunSize) -> list[Row]:
    """Run a scenario, on its own event loop if it is asynchronous."""
    rows = scenario(size)
    return rows if isinstance(rows, list) else asyncio.run(_rows(rows))


async def _rows(rows: Awaitable[list[Row]]) -> list[Row]:
    return await rows


def run_all(names: Iterable[str], size: RunSize) -> list[Row]:
    """Run scenarios one after another, and print the rows of each."""
    results: list[Row] = []
    for name in names:
        started = time.monotonic()
        rows = run(SCENARIOS[name], size)
        print(f"{name}, {time.monotonic() - started:.0f} s\n\n{plain(rows)}\n", flush=True)
        results += rows
    return results


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run fewer rounds")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=SCENARIOS, help="scenarios")
    parser.add_argument("--list", action="store_true", help="list the scenarios and exit")
    parser.add_argument("--write", action="store_true", help="write into docs after any run")
    return parser.parse_args()


def main() -> int:
    """Run the benchmarks; return 1 if a target is missed."""
    arguments = parse_arguments()
    if arguments.list:
        for name, scenario in SCENARIOS.items():
            summary = (inspect.getdoc(inspect.getmodule(scenario)) or "").splitlines()[0]
            print(f"{name:16} {summary}")
        return 0
    size = RunSize.QUICK if arguments.quick else RunSize.FULL
    rows = run_all(arguments.only or SCENARIOS, size)
    if arguments.write or not (arguments.quick or arguments.only):
        today = dt.datetime.now(dt.UTC).date().isoformat()
        write(Report(date=today, machine=machine(), versions=versions(), rows=rows), ROOT)
    missed = [row for row in rows if row.met is False]
    for row in missed:
        print(f"MISSED: {row.scenario}, {row.measure}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
