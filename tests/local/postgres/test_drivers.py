"""Drivers connect to a branch of the local control plane, and parent and branch differ."""

import shutil

import pytest

from tests.local.postgres.drivers import (
    DRIVERS,
    assert_parent_and_branch_differ,
    client_of_databases,
)


@pytest.fixture(autouse=True)
def fail_on_blocked_loop() -> None:
    """Allow blocking calls, because asyncpg reads certificates on the event loop."""


@pytest.mark.postgres
@pytest.mark.parametrize("tls", [False, True])
async def test_each_driver_sees_that_parent_and_branch_differ(*, tls: bool) -> None:
    drivers = dict(DRIVERS)
    if tls and shutil.which("psql") is None:
        del drivers["psql"]  # the psql of the extra [postgres] has no TLS
    async with client_of_databases(tls=tls) as neon:
        await assert_parent_and_branch_differ(neon, drivers)
