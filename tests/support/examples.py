"""The examples, run as processes."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from neonctl_async.local import LocalControlPlane

EXAMPLES = Path(__file__).parents[2] / "examples"


@asynccontextmanager
async def started(
    control_plane: LocalControlPlane | None,
    example: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """An example as a process, warnings being errors, against ``plane`` or one of its own."""
    there = {name: value for name, value in os.environ.items() if "NEON_" not in name}
    if control_plane is not None:
        there |= {"NEON_API_KEY": control_plane.api_key, "NEON_API_HOST": control_plane.base_url}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", str(EXAMPLES / example), *arguments),
        cwd=directory,
        env=there | dict(environment or {}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def run(
    control_plane: LocalControlPlane | None,
    example: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> tuple[int | None, str, str]:
    """The exit code of an example, what it said, and what it complained of."""
    start = started(
        control_plane, example, *arguments, environment=environment, directory=directory
    )
    async with start as process:
        output, complaints = await process.communicate()
    return process.returncode, output.decode(), complaints.decode()
