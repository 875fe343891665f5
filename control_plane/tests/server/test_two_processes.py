"""Two client processes that change one project, and two servers that want one file."""

import asyncio
import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from control_plane.tests.client import Http
from tests.support.server_process import Served, serving

pytestmark = [pytest.mark.process, pytest.mark.scale]


async def hammer(served: Served) -> dict[str, int]:
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "control_plane.tests.server.hammer", served.base_url),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"NEON_API_KEY": served.api_key},
    )
    printed, _ = await client.communicate()
    statuses: dict[str, int] = json.loads(printed)
    return statuses


@pytest.mark.parametrize("stored", [True, False], ids=["file", "memory"])
async def test_conflicting_requests_of_two_processes_never_fail_in_the_server(
    tmp_path: Path, stored: bool
) -> None:
    data = ("--data", str(tmp_path / "plane.db")) if stored else ()
    async with serving(*data, "--duration", "0.01", "--lock", "none", "--quiet") as served:
        async with Http(served.base_url, served.api_key) as http:
            await http.request("POST", "/projects", {"project": {}})
        statuses: Counter[str] = Counter()
        for counts in await asyncio.gather(hammer(served), hammer(served)):
            statuses += Counter(counts)
        log = await served.kill()
    assert set(statuses) <= {"200", "201", "204", "404", "409", "422"}, statuses
    assert statuses["201"] >= 3, "each name is free at first"
    assert statuses["409"] > 10, "names conflict"
    assert "Traceback" not in log
