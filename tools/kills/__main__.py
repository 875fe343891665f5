"""Runs the campaign: ``python -m tools.kills``. The exit status is 1 after a violation."""

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path

from tools.kills.campaign import Campaign


def main() -> int:
    """Run a campaign with each seed; return 1 after a violation."""
    parser = argparse.ArgumentParser(prog="python -m tools.kills")
    parser.add_argument("--kills", type=int, default=100, help="the number of kills per seed")
    parser.add_argument("--pause", type=float, default=0.7, help="mean pause between two kills")
    parser.add_argument("--seeds", type=int, nargs="+", default=[random.randrange(1_000_000)])
    options = parser.parse_args()
    violations: list[str] = []
    for seed in options.seeds:
        # Postgres does not run as root: its account must be able to enter the directory.
        with tempfile.TemporaryDirectory(prefix="kills-", dir="/tmp") as directory:
            Path(directory).chmod(0o711)
            campaign = Campaign(Path(directory), seed)
            asyncio.run(campaign.run(options.kills, options.pause))
        found = campaign.findings.violations
        sys.stdout.write(f"seed {seed}\n{campaign.report()}\n")
        sys.stdout.writelines(f"{line}\n" for line in found[:20])
        sys.stdout.write(f"{len(found)} violations\n\n")
        violations += found
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
