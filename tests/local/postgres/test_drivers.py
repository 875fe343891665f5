"""Drivers connect to a branch of the local control plane, and parent and branch differ."""

import pytest

from tests.local.postgres.drivers import (
    DRIVERS,
    assert_parent_and_branch_differ,
    client_of_databases,
)


@pytest.mark.postgres
async def test_each_driver_sees_that_parent_and_branch_differ() -> None:
    async with client_of_databases() as neon:
        await assert_parent_and_branch_differ(neon, DRIVERS)
