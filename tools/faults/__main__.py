"""Runs fault campaigns: ``python -m tools.faults``."""

import argparse
import logging
import sys
import tempfile
from pathlib import Path

from tools.faults.campaign import run


def main() -> int:
    """Run campaigns; answers 1 if anything contradicts the truth."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults")
    parser.add_argument("--faults", type=int, default=10_000, help="how many, with each seed")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[1, 2, 3], help="a campaign is run with each"
    )
    parser.add_argument(
        "--seconds-between-kills", type=float, default=15.0, help="of the control plane"
    )
    options = parser.parse_args()
    logging.disable()
    wrong: list[str] = []
    for seed in options.seeds:
        with tempfile.TemporaryDirectory() as directory:
            campaign = run(options.faults, seed, Path(directory), options.seconds_between_kills)
        sys.stdout.write(f"seed {seed}\n")
        sys.stdout.writelines(f"{line}\n" for line in campaign.table())
        sys.stdout.writelines(f"{line}\n" for line in campaign.contradictions[:20])
        sys.stdout.write(f"{len(campaign.contradictions)} violations\n\n")
        wrong += campaign.contradictions
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
