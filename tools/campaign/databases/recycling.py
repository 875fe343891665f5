"""A control plane without a file, which recycles databases.

Like the command line, it prints its address and a key. The first line of its input is the id of a
branch, whose copies it then keeps ready, as the pytest plugin does.
"""

import asyncio
import signal
import sys

from neonctl_local import LocalControlPlane, PostgresSettings
from neonctl_local.settings import Durations

READY = 3
"""The copies that wait for use."""


async def serve(port: int, postgres_port: int) -> None:
    """Serve until SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    postgres = PostgresSettings(port=postgres_port)
    async with LocalControlPlane(
        port=port, durations=Durations(default=0), lock="none", postgres=postgres, console=False
    ) as control_plane:
        sys.stdout.write(f"export NEON_API_HOST={control_plane.base_url}\n")
        sys.stdout.write(f"export NEON_API_KEY={control_plane.first_start_key}\n")
        sys.stdout.flush()
        branch_id = await asyncio.to_thread(sys.stdin.readline)
        await control_plane.prepare_branches(branch_id.strip(), READY)
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(serve(*(int(port) for port in sys.argv[1:])))
