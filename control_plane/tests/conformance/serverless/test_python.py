"""The Python packages for Neon's serverless endpoint."""

import asyncio

import pytest
from neon_serverless import NeonDbError, neon_async
from sqlalchemy import create_engine, text

from tests.support.databases import databases
from tests.support.postgres import skip_without_postgres

pytestmark = [pytest.mark.conformance, pytest.mark.postgres]


@pytest.fixture(autouse=True)
def postgres() -> None:
    """Skip the tests on a machine without Postgres."""
    skip_without_postgres()


async def test_neon_serverless() -> None:
    async with databases() as (control_plane, client):
        project = await client.projects.create(name="test", wait=True)
        uri = project.connection_uri.serverless
        sql = neon_async(uri, endpoint=control_plane.sql_url)
        assert await sql("SELECT $1::int AS n, $2::text[] AS t", [7, ["a", None]]) == [
            {"n": 7, "t": ["a", None]}
        ]
        results = await sql.transaction(
            ["SELECT 1 AS n", "SHOW transaction_read_only"], read_only=True
        )
        assert results == [[{"n": 1}], [{"transaction_read_only": "on"}]]
        with pytest.raises(NeonDbError, match='relation "nothing" does not exist'):
            await sql("TABLE nothing")
        await sql.aclose()


async def test_sqlalchemy_neon_serverless() -> None:
    async with databases() as (control_plane, client):
        project = await client.projects.create(name="test", wait=True)
        arguments = {
            "endpoint": control_plane.sql_url,
            "connection_string": project.connection_uri.serverless,
        }
        assert await asyncio.to_thread(increment, arguments, 1) == 2


def increment(arguments: dict[str, str], number: int) -> object:
    """Return the next number, from the database."""
    engine = create_engine("postgresql+neonserverless://", connect_args=arguments)
    with engine.connect() as connection:
        found = connection.scalar(text("SELECT CAST(:n AS int) + 1"), {"n": number})
    engine.dispose()
    return found
