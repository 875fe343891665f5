"""Runs the examples in separate processes."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from neonctl_local import LocalControlPlane

EXAMPLES = Path(__file__).parents[2] / "examples"


@asynccontextmanager
async def started(
    control_plane: LocalControlPlane | None,
    example: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Start an example with warnings as errors.

    It uses ``control_plane``, or starts a local control plane if that is None.
    """
    variables = {name: value for name, value in os.environ.items() if "NEON_" not in name}
    if control_plane is not None:
        variables |= {
            "NEON_API_KEY": control_plane.api_key,
            "NEON_API_HOST": control_plane.base_url,
        }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", str(EXAMPLES / example), *arguments),
        cwd=directory,
        env=variables | dict(environment or {}),
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
    control_plane: LocalControlPlane | None, example: str, *arguments: str, **options: Any
) -> tuple[int | None, str, str]:
    """Run an example with the options of ``started``. Return its exit code, output and errors."""
    async with started(control_plane, example, *arguments, **options) as process:
        output, errors = await process.communicate()
    return process.returncode, output.decode(), errors.decode()
