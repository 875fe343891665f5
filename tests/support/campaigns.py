"""Campaigns of ``tools``, run as a command runs them."""

import asyncio
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


async def run_campaign(name: str, *arguments: str) -> str:
    """Run a campaign that must find no violation. Return its output."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", f"tools.{name}", *arguments),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await process.communicate())[0].decode()
    assert process.returncode == 0, output
    assert output.rstrip().endswith("\n0 violations"), output
    return output
