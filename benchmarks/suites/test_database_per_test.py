"""Each test reads and changes its own database."""

from collections.abc import Callable

from benchmarks.servers.queries import connected


async def test_database_has_the_rows_of_the_parent_and_no_others(
    number: int, database_uri: str, rows: int, first_query_done: Callable[[], None]
) -> None:
    """Count the rows, and add one that no other test may find."""
    async with connected(database_uri) as connection:
        assert await connection.fetchval("SELECT max(id) FROM items") == rows
        first_query_done()
        await connection.execute("INSERT INTO items VALUES ($1, 'new', now())", rows + number + 1)
        assert await connection.fetchval("SELECT count(*) FROM items") == rows + 1
