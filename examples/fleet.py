"""Create the branches that a file lists, in a process that may be killed at any time.

    python examples/fleet.py [FILE] [--canary N] [--data FILE] [--fail N]

Each line of the CSV file is a tenant: a branch with a compute in a project. The program creates
missing projects, and prints each tenant when it is ready.

If the program is killed, run it again. It adopts existing branches, waits for pending ones, and
creates the missing ones. After a complete run, each branch exists once and is ready. The program
reports branches whose creation failed; delete these branches and run the program again.

Without NEON_API_KEY, the program works offline, with a local control plane that stores its data in
the --data file. --fail then makes the creation of N branches fail.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from neonctl_async import NeonClient, NeonError, OperationFailedError
from neonctl_async.provisioning.fleet import Fleet, FleetUpdate, Tenant, read_tenants
from neonctl_local import LocalControlPlane

SAMPLE = Path(__file__).with_suffix(".csv")


@asynccontextmanager
async def connect(data: Path, failures: int) -> AsyncGenerator[NeonClient]:
    """Connect to Neon if NEON_API_KEY is set, otherwise to a rate-limited local control plane."""
    if os.environ.get("NEON_API_KEY"):
        async with NeonClient() as neon:
            yield neon
    else:
        async with LocalControlPlane(data=data, rate_limits=True) as control_plane:
            if failures:
                await control_plane.fail_next("create_branch", times=failures)
            key = await control_plane.create_api_key("fleet")
            async with NeonClient(key, base_url=control_plane.base_url) as neon:
                yield neon


def show(update: FleetUpdate) -> None:
    """Print a tenant's outcome, without its connection URI."""
    if update.result is None:
        failed = isinstance(update.error, OperationFailedError)
        remedy = "; delete the branch, then run the program again" if failed else ""
        print(f"{update.tenant} is not ready: {update.error}{remedy}", flush=True)
    elif update.result.connection_uri is not None:
        # A real program would run the tenant's migrations here.
        print(f"{update.tenant} is ready at {update.result.connection_uri.host}", flush=True)


async def main(tenants: Sequence[Tenant], data: Path, canary: int, failures: int) -> int:
    """Provision all tenants; return 0 if all of them are ready."""
    async with connect(data, failures) as neon:
        fleet = Fleet(neon, tenants)
        plan = await fleet.plan()
        print(f"at {neon.base_url}: {plan}", flush=True)
        report = await fleet.apply(canary=canary, on_update=show)
        print(f"{neon.requests_sent} requests sent")
    print(report)
    return 0 if report.is_complete else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Create branches; continue after a kill.")
    parser.add_argument("file", nargs="?", type=Path, default=SAMPLE, metavar="FILE")
    parser.add_argument("--canary", type=int, default=0, metavar="N")
    parser.add_argument("--data", type=Path, default=Path("fleet.db"), metavar="FILE")
    parser.add_argument("--fail", type=int, default=0, metavar="N")
    options = parser.parse_args()
    try:
        tenants = read_tenants(options.file)
        sys.exit(asyncio.run(main(tenants, options.data, options.canary, options.fail)))
    except (NeonError, OSError, ValueError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print("interrupted; run the program again to continue", file=sys.stderr)
        sys.exit(130)
