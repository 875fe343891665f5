"""Runs loads on the fake clock and prints one line for each.

The exit status is 1 if a criterion is missed.
"""

import argparse
import logging
import sys
from collections.abc import Iterable

from benchmarks.loads import judge, lone, scripts
from benchmarks.loads.catalogue import PER_MINUTE, catalogue
from benchmarks.loads.measure import Outcome, percentile, run

COLUMNS = (
    *("load", "branches", "projects", "last end", "oracle", "delay", "worst", "median", "p90"),
    *("requests", "polls", "allowed", "of oracle", "429", "rate", "gap", "most polls", "serial"),
)
"""The titles of the columns. Times are in seconds.

"last end" is the end of the last operation, and "oracle" that of the oracle's last wait. "worst",
"median" and "p90" are the lateness of waits. "gap" is the longest time without a poll of a project
with a pending wait. "serial" is the longest time by which a locked project returned later than its
serial work requires.
"""
NAME_WIDTH = 60


def line(outcome: Outcome) -> str:
    """Return the line of a run."""
    late = outcome.lateness
    numbers = (
        len(outcome.load.branches),
        len(outcome.load.projects),
        f"{outcome.finished:.1f}",
        f"{outcome.oracle.end:.1f}",
        f"{outcome.delay:.2f}",
        f"{late[-1] if late else 0.0:.2f}",
        f"{percentile(late, 50):.2f}",
        f"{percentile(late, 90):.2f}",
        len(outcome.requests),
        outcome.polls,
        f"{outcome.allowed_requests:.0f}",
        outcome.oracle.requests,
        outcome.refused,
        f"{outcome.rate:.0%}",
        f"{outcome.longest_gap():.1f}",
        max(map(len, outcome.polls_by_project().values())),
        f"{max(outcome.beyond_serial.values()):.1f}"
        if outcome.load.settings.locks_projects
        else "",
    )
    missed = [name for name, is_met in outcome.criteria().items() if not is_met]
    verdict = f"MISSED: {', '.join(missed)}" if missed else "met"
    return _columns((outcome.load.name, *map(str, numbers))) + f"  {verdict}"


def _columns(cells: Iterable[str]) -> str:
    name, *numbers = cells
    widths = (max(len(title), 6) for title in COLUMNS[1:])
    right = (cell.rjust(width) for cell, width in zip(numbers, widths, strict=True))
    return " ".join([name.ljust(NAME_WIDTH), *right])


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loads", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the seed of all loads (default 0)")
    parser.add_argument("--only", metavar="TEXT", default="", help="loads whose name contains TEXT")
    parser.add_argument(
        "--rate", type=int, default=PER_MINUTE, help="requests a minute (default 700)"
    )
    parser.add_argument("--lone", action="store_true", help="run single waits instead of loads")
    parser.add_argument("--judge", action="store_true", help="compare policies on other loads")
    parser.add_argument("--ours", action="store_true", help="judge the default policy only")
    return parser.parse_args()


def run_loads(arguments: argparse.Namespace) -> int:
    """Run the loads; return how many miss a criterion."""
    print(_columns(COLUMNS))
    missed = 0
    for load in catalogue(arguments.seed, arguments.rate):
        if arguments.only in load.name:
            outcome = run(load, arguments.seed)
            missed += not all(outcome.criteria().values())
            print(line(outcome), flush=True)
            for failure in outcome.failures[:3]:
                print(f"    {failure}")
    return missed


def run_judge(arguments: argparse.Namespace) -> None:
    """Compare the default policy with constant intervals on loads that nobody tuned for."""
    policies = [judge.DEFAULT] if arguments.ours else list(judge.POLICIES)
    seed = arguments.seed or judge.SEED
    found = list(judge.scores(seed, policies, arguments.only))
    print(*judge.table(found), sep="\n")
    if not arguments.only:
        late = judge.step_lateness(seed)
        print(f"8 s, then 1 s: {late:.2f} s late in the median, from 15 s after the step on")
        for projects in (1, 3):
            late, cpu = judge.steady_creates(seed, projects)
            print(f"3,000 creates in {projects}: {late:.2f} s late, {cpu:.1f} s of CPU")


def run_lone(arguments: argparse.Namespace) -> int:
    """Run the single waits; return how many cases miss a limit."""
    print(lone.HEAD)
    missed = 0
    for case in lone.cases(arguments.seed):
        if arguments.only in case.name:
            result = lone.run(case, arguments.seed)
            missed += bool(result.missed(case))
            print(result.line(case), flush=True)
    if not arguments.only:
        for is_chained in (True, False):
            print(*scripts.table(is_chained=is_chained, seed=arguments.seed), sep="\n", flush=True)
    return missed


def main() -> int:
    """Run the loads or the single waits; return 1 if a criterion is missed."""
    arguments = parse_arguments()
    # Refused requests would be logged.
    logging.getLogger("neonctl_async").addHandler(logging.NullHandler())
    if arguments.judge:
        run_judge(arguments)
        return 0
    missed = run_lone(arguments) if arguments.lone else run_loads(arguments)
    print(f"{missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
