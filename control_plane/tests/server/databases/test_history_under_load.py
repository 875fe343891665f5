"""A branch at a random time has exactly the transactions that were committed until then."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg import AsyncConnection

from neonctl_async import NeonClient
from tests.support.databases import READ_WRITE, client, databases, uri_of

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]

CLIENTS = 4
SETUP = """
CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
CREATE TABLE transfers (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), amount int);
INSERT INTO accounts SELECT n, 0 FROM generate_series(1, 20) AS n;
"""
COMMITTED = "SELECT id, pg_xact_commit_timestamp(xmin) FROM transfers"
BALANCED = """
SELECT (SELECT sum(balance) FROM accounts) = (SELECT coalesce(sum(amount), 0) FROM transfers)
"""


class Subject:
    """The first branch of a project, into which clients write."""

    def __init__(self, neon: NeonClient, project_id: str, branch_id: str, seed: int) -> None:
        self._neon = neon
        self._ids = (project_id, branch_id)
        self._chance = random.Random(seed)
        self.since = datetime.now(UTC)

    def use(self, neon: NeonClient) -> None:
        """Use another client, after a restart of the control plane."""
        self._neon = neon

    async def uri(self) -> str:
        """Return the connection URI of the branch."""
        found = await self._neon.projects.connection_uri(
            self._ids[0], database_name="neondb", role_name="neondb_owner"
        )
        return found.reveal()

    @asynccontextmanager
    async def load(self) -> AsyncGenerator[None]:
        """Let clients transfer amounts to accounts. They stop when their server does."""
        uri = await self.uri()
        tasks = [asyncio.create_task(self._transfer(uri)) for _ in range(CLIENTS)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def check(self, count: int) -> None:
        """Compare branches at random times with the transfers that were committed until then."""
        async with self.load():
            await asyncio.sleep(0.2)
            for _ in range(count):
                at = self._random_time()
                await self._compare(at, {"parent_id": self._ids[1], "parent_timestamp": at})

    async def check_snapshot(self) -> None:
        """Compare a snapshot of a random time in the same way."""
        at = self._random_time()
        taken = await self._neon.snapshots.create(*self._ids, timestamp=at, wait=True)
        restored = await self._neon.snapshots.restore(
            self._ids[0], taken.snapshot.id, name="from a snapshot", wait=True
        )
        await self._compare(at, {"parent_id": restored.branch.id})

    async def restore(self, kept: str) -> None:
        """Restore the branch to a random time."""
        await self._neon.branches.restore(
            *self._ids,
            source_branch_id=self._ids[1],
            source_timestamp=self._random_time(),
            preserve_under_name=kept,
            wait=True,
        )
        self.since = datetime.now(UTC)

    def _random_time(self) -> datetime:
        return self.since + self._chance.random() * (datetime.now(UTC) - self.since)

    async def _transfer(self, uri: str) -> None:
        with suppress(psycopg.OperationalError):
            async with await AsyncConnection.connect(uri) as connection:
                while True:
                    values = (self._chance.randint(1, 9), self._chance.randint(1, 20))
                    update = "UPDATE accounts SET balance = balance + %s WHERE id = %s"
                    await connection.execute(update, values)
                    insert = "INSERT INTO transfers (amount) VALUES (%s)"
                    await connection.execute(insert, values[:1])
                    fails = self._chance.random() < 0.1
                    await (connection.rollback() if fails else connection.commit())
                    await asyncio.sleep(0.005)  # the servers share the cores with the clients

    async def _compare(self, at: datetime, source: dict[str, object]) -> None:
        options = {"endpoints": [READ_WRITE], "wait": True} | source
        created = await self._neon.branches.create(self._ids[0], **options)  # type: ignore[arg-type]  # mypy cannot match a dict of objects with the keywords
        times = await read_times(await self.uri())
        found = (await read_times(uri_of(created))).keys()
        expected = {transfer for transfer, time in times.items() if time <= at}
        wrong = [times.get(transfer) for transfer in found ^ expected]
        assert not wrong, f"at {at}, {len(found)} instead of {len(expected)}: {wrong[:3]}"
        async with await AsyncConnection.connect(uri_of(created)) as connection:
            assert await (await connection.execute(BALANCED)).fetchone() == (True,)
        await self._neon.branches.delete(
            self._ids[0], created.branch.id, hard_delete=True, wait=True
        )


async def read_times(uri: str) -> dict[UUID, datetime]:
    """Return the time at which each transfer was committed."""
    async with await AsyncConnection.connect(uri) as connection:
        return dict(await (await connection.execute(COMMITTED)).fetchall())


@pytest.mark.parametrize(
    ("count", "seed"),
    [
        pytest.param(1, 0, marks=pytest.mark.long),
        pytest.param(50, 1, marks=[pytest.mark.soak, pytest.mark.timeout(1800)]),
    ],
)
async def test_branch_has_the_commits_up_to_its_time(
    open_directory: Path, count: int, seed: int
) -> None:
    options = {"data": open_directory / "plane.db", "history": True}
    async with databases(**options) as (control_plane, neon):
        project = await neon.projects.create(name="test", wait=True)
        key = control_plane.api_key
        async with await AsyncConnection.connect(uri_of(project)) as connection:
            await connection.execute(SETUP)
        subject = Subject(neon, project.project.id, project.branch.id, seed)
        await subject.check(count)
        async with subject.load():
            await control_plane.stop()
            await control_plane.start()
            async with client(control_plane, key) as again:
                subject.use(again)
                await subject.check(count)
                await subject.check_snapshot()
                for kept in ("first", "second"):
                    await subject.restore(kept)
                    await subject.check(count)
