"""Tests for a pull request's migrated database.

DATABASE_URL=postgresql://… python -m unittest discover
"""

import os
import unittest

import asyncpg


class OrdersTest(unittest.IsolatedAsyncioTestCase):
    """Tests that change data on the pull request's branch. The parent branch does not change."""

    async def asyncSetUp(self) -> None:
        """Connect to the database."""
        self.connection = await asyncpg.connect(os.environ["DATABASE_URL"])
        self.addAsyncCleanup(self.connection.close)

    async def test_order_is_stored(self) -> None:
        """An order gets an id, and can be found by it."""
        id = await self.connection.fetchval(
            "INSERT INTO orders (item, count) VALUES ('book', 2) RETURNING id"
        )
        count = await self.connection.fetchval("SELECT count FROM orders WHERE id = $1", id)
        assert count == 2
