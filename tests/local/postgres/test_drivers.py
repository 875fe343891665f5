"""Drivers connect to a branch of the local control plane, and parent and branch differ."""

import pytest

from tests.local.postgres.drivers import (
    DRIVERS,
    assert_parent_and_branch_differ,
    client_of_databases,
)

pytestmark = pytest.mark.process


@pytest.mark.parametrize("driver", DRIVERS)
async def test_driver_sees_that_parent_and_branch_differ(driver: str) -> None:
    async with client_of_databases() as neon:
        await assert_parent_and_branch_differ(neon, DRIVERS[driver])
