"""A local control plane with Postgres in its own process, as users start it."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

_STOP_SECONDS = 300.0


class LocalControlPlaneProcess(NamedTuple):
    """The process, and how to reach it."""

    pid: int
    base_url: str
    api_key: str


@asynccontextmanager
async def local_control_plane(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> AsyncGenerator[LocalControlPlaneProcess]:
    """Run the command with ``--postgres``. Its operations have no planned duration."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "neonctl_local", "--postgres", "--port", "0"),
        *("--duration", "0", "--quiet", "--no-console", *arguments),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | dict(environment or {}),
    )
    try:
        assert process.stdout is not None
        lines = [(await process.stdout.readline()).decode() for _ in range(2)]
        values = dict(line.removeprefix("export ").strip().split("=", 1) for line in lines)
        yield LocalControlPlaneProcess(process.pid, values["NEON_API_HOST"], values["NEON_API_KEY"])
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
