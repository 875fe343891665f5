"""A short campaign of messages in any order; ``make pooler`` runs a long one."""

import asyncio

import pytest

from tests.support.campaigns import run_campaign
from tests.support.postgres import skip_without_postgres


@pytest.mark.scale
@pytest.mark.postgres
@pytest.mark.timeout(400)  # it takes 5 seconds, and minutes with PgBouncer, which hangs its clients
async def test_well_behaved_clients_of_the_pooler_notice_nothing_of_others() -> None:
    await asyncio.to_thread(skip_without_postgres)
    assert "PgBouncer" in await run_campaign("pooler", "--seed", "7", "--frames", "10000")
