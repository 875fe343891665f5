"""Runs the migrations that a database does not have yet, sorted by name.

    DATABASE_URL=postgresql://… python migrate.py

The workflow runs this program on every push. Either all migrations of a run succeed, or none do.
"""

import asyncio
import os
from pathlib import Path

import asyncpg

MIGRATIONS = {
    path.name: path.read_text(encoding="utf-8")
    for path in sorted(Path(__file__).with_name("migrations").glob("*.sql"))
}
CREATE_LIST = "CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY)"
LOCK = 7041776


async def main() -> None:
    """Run the migrations on the database at ``DATABASE_URL``."""
    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    try:
        async with connection.transaction():
            # Concurrent runs execute each migration once.
            await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
            await connection.execute(CREATE_LIST)
            done = {row["name"] for row in await connection.fetch("SELECT name FROM migrations")}
            for name in sorted(MIGRATIONS.keys() - done):
                await connection.execute(MIGRATIONS[name])
                await connection.execute("INSERT INTO migrations VALUES ($1)", name)
                print("ran", name)
    finally:
        await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
