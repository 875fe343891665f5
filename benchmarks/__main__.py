"""Runs the benchmarks and prints the results. The exit status is 1 if a target is missed.

A complete run of a group writes its results as JSON, and the tables in docs that show them.
"""

import argparse
import asyncio
import datetime as dt
import inspect
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.machine import (
    machine,
    versions,
    versions_of_command_lines,
    versions_of_control_plane,
    versions_of_databases,
)
from benchmarks.harness.report import (
    Report,
    plain,
    write,
)
from benchmarks.harness.results import Row
from benchmarks.harness.run_size import RunSize
from benchmarks.scenarios import (
    console,
    control_plane_size,
    database_proxy,
    database_suites,
    databases,
    fan_out,
    first_database,
    get,
    history,
    imports,
    many_databases,
    memory,
    page,
    paging,
    pytest_plugin,
    scale,
    scripts,
    shared_budget,
    startup,
    waits,
)

Scenario = Callable[[RunSize], Awaitable[list[Row]] | list[Row]]


class Group(NamedTuple):
    """Scenarios that have a report together."""

    scenarios: dict[str, Scenario]
    versions: Callable[[], dict[str, str]]
    report: str


CLIENT = Group(
    {
        "get": get.run,
        "page": page.run,
        "paging": paging.run,
        "imports": imports.run,
        "memory": memory.run,
        "scale": scale.run,
        "pytest_plugin": pytest_plugin.run,
    },
    versions,
    "benchmarks",
)
WAITING = Group(
    {
        "scripts": scripts.run,
        "waits": waits.run,
        "fan_out": fan_out.run,
        "shared_budget": shared_budget.run,
    },
    versions,
    "benchmarks-waiting",
)
DATABASES = Group(
    {
        "databases": databases.run,
        "first_database": first_database.run,
        "many_databases": many_databases.run,
        "database_suites": database_suites.run,
        "database_proxy": database_proxy.run,
        "history": history.run,
    },
    versions_of_databases,
    "benchmarks-databases",
)
STARTUP = Group({"startup": startup.run}, versions_of_command_lines, "benchmarks-startup")
CONTROL_PLANE = Group(
    {"control_plane_size": control_plane_size.run, "console": console.run},
    versions_of_control_plane,
    "benchmarks-control-plane",
)
GROUPS = {
    "client": CLIENT,
    "waiting": WAITING,
    "control_plane": CONTROL_PLANE,
    "databases": DATABASES,
    "startup": STARTUP,
}
ROOT = Path(__file__).parent.parent


def run(scenario: Scenario, size: RunSize) -> list[Row]:
    """Run a scenario, on its own event loop if it is asynchronous."""
    rows = scenario(size)
    return rows if isinstance(rows, list) else asyncio.run(_rows(rows))


async def _rows(rows: Awaitable[list[Row]]) -> list[Row]:
    return await rows


def run_all(scenarios: Mapping[str, Scenario], size: RunSize) -> list[Row]:
    """Run scenarios one after another, and print the rows of each."""
    results: list[Row] = []
    for name, scenario in scenarios.items():
        started = time.monotonic()
        rows = run(scenario, size)
        print(f"{name}, {time.monotonic() - started:.0f} s\n\n{plain(rows)}\n", flush=True)
        results += rows
    return results


def run_group(
    group: Group, only: Collection[str], size: RunSize, *, always_write: bool
) -> list[Row]:
    """Run scenarios of a group. A full run of the whole group writes its report."""
    selected = {name: run for name, run in group.scenarios.items() if name in only}
    complete = size is RunSize.FULL and selected == group.scenarios
    is_written = bool(selected) and (complete or always_write)
    # A missing program should be found before all is measured.
    versions = group.versions() if is_written else {}
    rows = run_all(selected, size)
    if rows and is_written:
        today = dt.datetime.now(dt.UTC).date().isoformat()
        report = Report(date=today, machine=machine(), versions=versions, rows=rows)
        write(report, ROOT, group.report, complete=complete)
    return rows


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    names = [name for group in GROUPS.values() for name in group.scenarios]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run fewer rounds")
    parser.add_argument("--group", choices=GROUPS, help="the scenarios of one group")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, help="scenarios")
    parser.add_argument("--list", action="store_true", help="list the scenarios and exit")
    parser.add_argument("--write", action="store_true", help="write these results and tables")
    return parser.parse_args()


def main() -> int:
    """Run the benchmarks; return 1 if a target is missed."""
    arguments = parse_arguments()
    groups = [GROUPS[arguments.group]] if arguments.group else GROUPS.values()
    if arguments.list:
        for name, scenario in ((n, s) for group in groups for n, s in group.scenarios.items()):
            summary = (inspect.getdoc(inspect.getmodule(scenario)) or "").splitlines()[0]
            print(f"{name:16} {summary}")
        return 0
    size = RunSize.QUICK if arguments.quick else RunSize.FULL
    rows: list[Row] = []
    for group in groups:
        only = arguments.only or group.scenarios
        rows += run_group(group, only, size, always_write=arguments.write)
    missed = [row for row in rows if row.met is False]
    for row in missed:
        print(f"MISSED: {row.scenario}, {row.measure}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
