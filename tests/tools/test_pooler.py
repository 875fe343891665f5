"""A short campaign of messages in any order; ``make pooler`` runs a long one."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.support.postgres import skip_without_postgres

ROOT = Path(__file__).parents[2]


@pytest.mark.scale
@pytest.mark.postgres
@pytest.mark.timeout(400)  # it takes 5 seconds, and minutes with PgBouncer, which hangs its clients
async def test_well_behaved_clients_of_the_pooler_notice_nothing_of_others() -> None:
    await asyncio.to_thread(skip_without_postgres)
    campaign = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "tools.pooler", "--seed", "7", "--frames", "10000"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await campaign.communicate())[0].decode()
    assert campaign.returncode == 0, output
    assert output.rstrip().endswith("\n0 violations")
    assert "PgBouncer" in output
