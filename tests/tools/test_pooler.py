"""A short campaign of messages in any order; ``make pooler`` runs a long one."""

import asyncio

import pytest

from control_plane.tests.postgres.proxy.conversations import summary
from control_plane.tests.postgres.proxy.model import message
from tests.support.campaigns import run_campaign
from tests.support.postgres import skip_without_postgres


@pytest.mark.scale
@pytest.mark.postgres
async def test_well_behaved_clients_of_the_pooler_notice_nothing_of_others() -> None:
    await asyncio.to_thread(skip_without_postgres)
    assert "PgBouncer" in await run_campaign("pooler", "--seed", "7", "--frames", "10000")


def test_error_of_pgbouncer_is_compared_though_it_has_fewer_fields() -> None:
    error = message(b"E", b"SFATAL\0C08P01\0Mserver conn crashed?\0\0")
    assert summary(error) == [("E", "FATAL 08P01")]
