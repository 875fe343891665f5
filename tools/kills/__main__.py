"""Runs the campaign: ``python -m tools.kills``. The exit status is 1 after a violation."""

import argparse
import asyncio
import random
import shutil
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
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--history", action="store_true", help="branch from the past, too")
    kinds.add_argument("--recycled", action="store_true", help="use databases again, without data")
    options = parser.parse_args()
    results = [
        run(seed, options.kills, options.pause, history=options.history, recycled=options.recycled)
        for seed in options.seeds
    ]
    return 0 if all(results) else 1


def run(seed: int, kills: int, pause: float, *, history: bool, recycled: bool) -> bool:
    """Run a campaign. After a violation, keep its directory and return False."""
    directory = Path(tempfile.mkdtemp(prefix="kills-", dir="/tmp"))
    # Postgres does not run as root: its account must be able to enter the directory.
    directory.chmod(0o711)
    campaign = Campaign(directory, seed, history=history, recycled=recycled)
    asyncio.run(campaign.run(kills, pause))
    violations = campaign.findings.violations
    sys.stdout.write(f"seed {seed}\n{campaign.report()}\n")
    sys.stdout.writelines(f"{line}\n" for line in violations[:20])
    if violations:
        sys.stdout.write(f"the data and the log are in {directory}\n")
    else:
        shutil.rmtree(directory)
    sys.stdout.write(f"{len(violations)} violations\n\n")
    sys.stdout.flush()
    return not violations


if __name__ == "__main__":
    sys.exit(main())
