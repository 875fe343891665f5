"""Starts the workers of the application.

    python -m tenants [--workers N] [--port PORT] [--data FILE]

With NEON_API_KEY, the tenants are branches of the project NEON_PROJECT_ID on Neon. Without
NEON_PROJECT_ID, the project is "tenants", in the organization NEON_ORG_ID if that is set. Without a
key, the program starts a local control plane with Postgres, which stores its data in the --data
file. Without this option, the data is lost when the program exits.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import UNSET

from neonctl_async import NeonClient, NeonError
from neonctl_local import LocalControlPlane

PROJECT = "tenants"
STOP = (signal.SIGINT, signal.SIGTERM)


async def find_or_create(neon: NeonClient) -> str:
    """Return the id of the tenants' project. Create the project if there is none.

    The workers do not do this, because Neon allows two projects with the same name.
    """
    org_id = os.environ.get("NEON_ORG_ID") or UNSET
    try:
        return (await neon.projects.find(PROJECT, org_id=org_id)).id
    except LookupError:
        return (await neon.projects.create(name=PROJECT, org_id=org_id, wait=True)).project.id


@asynccontextmanager
async def environment(data: Path | None) -> AsyncGenerator[dict[str, str]]:
    """Yield the environment variables that make workers use Neon or a local control plane."""
    if os.environ.get("NEON_API_KEY"):
        async with NeonClient() as neon:
            project = os.environ.get("NEON_PROJECT_ID") or await find_or_create(neon)
        yield {"NEON_PROJECT_ID": project}
        return
    async with LocalControlPlane(postgres=True, data=data) as control_plane:
        # A file keeps the data between runs, but the server shows its first key only once.
        key = await control_plane.create_api_key(PROJECT)
        async with NeonClient(key, base_url=control_plane.base_url) as neon:
            project = await find_or_create(neon)
        yield {
            "NEON_API_KEY": key,
            "NEON_API_HOST": control_plane.base_url,
            "NEON_PROJECT_ID": project,
        }


async def serve(workers: int, port: int, variables: Mapping[str, str]) -> int:
    """Run the workers until SIGINT or SIGTERM. Return the exit code."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "uvicorn", "--factory", "tenants.app:create_app"),
        *("--app-dir", str(Path(__file__).parents[1])),
        *("--workers", str(workers), "--port", str(port)),
        env={**os.environ, **variables},
    )

    def stop() -> None:
        with suppress(ProcessLookupError):
            process.terminate()

    for number in STOP:
        asyncio.get_running_loop().add_signal_handler(number, stop)
    code = await process.wait()
    return 0 if -code in STOP else code  # a single worker dies from the signal


async def main(options: argparse.Namespace) -> int:
    """Run the application. Return the exit code."""
    async with environment(options.data) as variables:
        with tempfile.TemporaryDirectory() as folder:
            budget = os.environ.get("NEON_RATE_BUDGET") or f"sqlite:///{folder}/budget.db"
            variables["NEON_RATE_BUDGET"] = budget
            return await serve(options.workers, options.port, variables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tenants", description="Serve tenants.")
    parser.add_argument("--workers", type=int, default=1, metavar="N")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--data", type=Path, metavar="FILE")
    try:
        sys.exit(asyncio.run(main(parser.parse_args())))
    except (NeonError, RuntimeError, OSError, ValueError) as error:
        sys.exit(str(error))
