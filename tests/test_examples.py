"""What the example of a fan-out says and leaves behind when not all goes well."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from neonctl_async import NeonClient
from neonctl_async.local import Durations, LocalControlPlane
from tests.support.until import until

FLEET = Path(__file__).parents[1] / "examples" / "fleet.py"


@asynccontextmanager
async def fleet(
    plane: LocalControlPlane | None, *arguments: str
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """The example as a process, against ``plane`` or one of its own."""
    environment = {name: value for name, value in os.environ.items() if "NEON_" not in name}
    if plane is not None:
        environment |= {"NEON_API_KEY": plane.api_key, "NEON_API_HOST": plane.base_url}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        FLEET,
        *arguments,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def projects_of(plane: LocalControlPlane) -> int:
    async with NeonClient(plane.api_key, base_url=plane.base_url) as neon:
        return len(await neon.projects.list().collect())


async def test_every_branch_of_a_fleet_is_ready_and_deleted_in_the_end() -> None:
    async with LocalControlPlane(durations=Durations(default=0.05)) as plane:
        async with fleet(plane, "40") as process:
            output, complaints = await process.communicate()
        assert (complaints.decode(), process.returncode) == ("", 0)
        assert "40 ready" in output.decode()
        assert "deleted 20 projects" in output.decode()
        assert await projects_of(plane) == 0


async def test_what_failed_is_told_with_what_was_created_and_takes_nothing_with_it() -> None:
    async with fleet(None, "6", "--fail", "2") as process:
        output, complaints = await process.communicate()
    assert (complaints.decode(), process.returncode) == ("", 1)
    assert output.decode().count("was created but is not ready") == 2
    assert "4 ready" in output.decode()
    assert "2 created, not ready" in output.decode()


@pytest.mark.parametrize("seconds", [0.0, 0.3, 0.8])
async def test_an_interrupt_leaves_nothing_behind(seconds: float) -> None:
    async with LocalControlPlane(durations=Durations(default=0.3)) as plane:
        async with fleet(plane, "12") as process:
            await until(lambda: any(request.status == 201 for request in plane.requests))
            await asyncio.sleep(seconds)
            process.send_signal(signal.SIGINT)
            await process.communicate()
        assert process.returncode == 130
        assert await projects_of(plane) == 0
