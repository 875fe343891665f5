"""Drivers connect to a branch of the local control plane, and parent and branch differ."""

import asyncio

import pytest

from neonctl_async import NeonClient
from tests.local.postgres.drivers import (
    DRIVERS,
    assert_parent_and_branch_differ,
    client_of_databases,
)

pytestmark = pytest.mark.postgres


async def test_each_driver_sees_that_parent_and_branch_differ() -> None:
    async with client_of_databases() as neon, asyncio.TaskGroup() as group:
        for driver in DRIVERS:
            group.create_task(check(driver, neon))


async def check(driver: str, neon: NeonClient) -> None:
    try:
        await assert_parent_and_branch_differ(neon, DRIVERS[driver])
    except Exception as error:
        error.add_note(f"The driver is {driver}.")
        raise
