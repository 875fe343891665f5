"""Copies of clusters as they were at an earlier moment."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.history.bases import Moment
from tests.support.clusters import DESIRED, execute, fetch

pytestmark = [pytest.mark.postgres, pytest.mark.long]
ROWS = "SELECT n FROM rows ORDER BY n"


@pytest.fixture
async def clusters(
    each_installation: Installation, account: ServerAccount | None, temporary_directory: Path
) -> AsyncIterator[Clusters]:
    """Clusters with history, one of which runs."""
    del temporary_directory
    major = each_installation.major
    clusters = Clusters(
        {major: each_installation}, account, directory=None, durable=False, history=True
    )
    await clusters.open()
    try:
        await clusters.initialize("br-main", major)
        await clusters.start("br-main", DESIRED)
        await execute(clusters, "br-main", "CREATE TABLE rows (n int)")
        yield clusters
    finally:
        await clusters.close()


async def test_copy_has_the_rows_of_its_time(clusters: Clusters) -> None:
    await execute(clusters, "br-main", "INSERT INTO rows VALUES (1)")
    first = datetime.now(UTC)
    await execute(clusters, "br-main", "INSERT INTO rows VALUES (2)")
    lsn = (await fetch(clusters, "br-main", "SELECT pg_current_wal_lsn()::text"))[0]
    await execute(clusters, "br-main", "INSERT INTO rows VALUES (3)")
    for moment, rows in [(Moment(first), [1]), (Moment(lsn=lsn), [1, 2])]:
        await clusters.check_moment("br-main", moment)
        await clusters.copy_past("br-main", "br-past", moment)
        await clusters.start("br-past", DESIRED)
        assert await fetch(clusters, "br-past", ROWS) == rows
