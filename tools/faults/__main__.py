"""Runs fault campaigns: ``python -m tools.faults``. The exit status is 1 after a violation."""

import argparse
import logging
import sys
import tempfile
from pathlib import Path

from tools.faults.campaign import NAMES, run


def main() -> int:
    """Run a campaign with each seed; return 1 if any result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults")
    parser.add_argument("--faults", type=int, default=10_000, help="mixed faults per seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument(
        "--seconds-between-kills",
        type=float,
        default=15.0,
        help="how long the control plane runs before it is killed",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="TEXT",
        help="inject only the faults whose names contain one of these texts",
    )
    options = parser.parse_args()
    names = [name for name in NAMES if any(text in name for text in options.only)]
    if not names:
        parser.error(f"--only is {options.only}: expected parts of {', '.join(NAMES)}")
    logging.disable()
    violations: list[str] = []
    for seed in options.seeds:
        with tempfile.TemporaryDirectory() as directory:
            report = run(
                options.faults, seed, Path(directory), options.seconds_between_kills, names
            )
        sys.stdout.write(f"seed {seed}\n")
        sys.stdout.writelines(f"{line}\n" for line in report.table())
        sys.stdout.writelines(f"{line}\n" for line in report.violations[:20])
        sys.stdout.write(f"{len(report.violations)} violations\n\n")
        violations += report.violations
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
