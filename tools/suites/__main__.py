"""``python -m tools.suites [NAME ...]``: run the tests of others against the local control plane.

Each suite runs on a bare Postgres, and on a branch, direct and through the pooler. The result is a
table of the tests that fail, and below it those that fail only on a branch. The exit status is 1 if
:data:`EXPLAINED` does not have one of them.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from neonctl_async.types import ConnectionUri
from neonctl_local.postgres.binaries import Installation, find_installations
from tools.suites.explained import reason
from tools.suites.places import BARE, open_places
from tools.suites.running import SUITES, Outcome, Place, fetch


class Run(NamedTuple):
    """The outcomes of a suite, by place."""

    suite: str
    outcomes: dict[str, Outcome]

    def only_in(self, place: str) -> list[str]:
        """Return the tests that fail in a place, and not on the bare server."""
        return sorted(self.outcomes[place].failed - self.outcomes[BARE].failed)


async def run_all(names: list[str], folder: Path, installation: Installation) -> list[Run]:
    """Run the suites one after another, because they share two cores."""
    runs: list[Run] = []
    async with open_places(installation) as places:
        for name in names:
            runs.append(
                Run(name, await asyncio.to_thread(run_in, places, name, folder, installation))
            )
            sys.stdout.write(f"{row(runs[-1])}\n")
            sys.stdout.flush()
    return runs


def run_in(
    places: Mapping[str, ConnectionUri], name: str, folder: Path, installation: Installation
) -> dict[str, Outcome]:
    """Run a suite in each place."""
    source = fetch(SUITES[name], folder)
    outcomes: dict[str, Outcome] = {}
    for place, uri in places.items():
        log = folder / f"{name}-{place}.log"
        outcomes[place] = SUITES[name].run(source, Place(uri, installation, log))
    return outcomes


def row(run: Run) -> str:
    """Return the row of a suite: the tests, and the failed ones in each place."""
    failed = [f"{len(one.failed)}" for one in run.outcomes.values()]
    return f"| {run.suite} | {run.outcomes[BARE].tests} | {' | '.join(failed)} |"


def complete_installation() -> Installation | None:
    """Return the newest Postgres of the machine that was built with ICU and TLS."""
    for installation in find_installations().values():
        command = [str(installation.program("pg_config")), "--configure"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - pg_config
        if "--with-icu" in run.stdout and "--with-openssl" in run.stdout:
            return installation
    return None


def main() -> int:
    """Run the suites; return 1 after an unexplained difference."""
    parser = argparse.ArgumentParser(prog="python -m tools.suites")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SUITES))
    options = parser.parse_args()
    if unknown := {*options.names} - {*SUITES}:
        parser.error(f"no suite is called {min(unknown)}: expected {', '.join(SUITES)}")
    installation = complete_installation()
    if installation is None:
        parser.error(
            "the suites need Postgres with ICU and TLS, which the wheel has not: install it"
        )
    folder = Path(tempfile.mkdtemp(prefix="suites-"))
    sys.stdout.write(
        f"logs: {folder}\n| suite | tests | bare | direct | pooled |\n|---|---|---|---|---|\n"
    )
    runs = asyncio.run(run_all(options.names or list(SUITES), folder, installation))
    unexplained = 0
    for run in runs:
        for place in run.outcomes:
            for test in run.only_in(place) if place != BARE else ():
                why = reason(run.suite, place, test)
                unexplained += why is None
                sys.stdout.write(f"{run.suite}, {place}: {test}: {why or 'NOT EXPLAINED'}\n")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
