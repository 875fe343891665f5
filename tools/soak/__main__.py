"""Runs the campaign: ``python -m tools.soak``. The exit status is 1 after a violation."""

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path

from tools.soak.campaign import Campaign


def main() -> int:
    """Run a campaign; return 1 after a violation."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak")
    parser.add_argument("--writers", type=int, default=50)
    parser.add_argument("--projects", type=int, default=5)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--pause", type=float, default=1.0, help="mean pause between two kills")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="how long the last server runs under load"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        campaign = Campaign(
            Path(directory) / "plane.db",
            writers=options.writers,
            projects=options.projects,
            seed=options.seed,
        )
        asyncio.run(campaign.run(options.kills, options.pause, options.seconds))
    violations = campaign.state.violations
    sys.stdout.write(f"seed {options.seed}\n{campaign.report()}\n")
    sys.stdout.writelines(f"{line}\n" for line in violations[:20])
    sys.stdout.write(f"{len(violations)} violations\n")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
