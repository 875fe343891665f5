"""Restored copies read the right catalogs, whatever the migrations and a test did to them."""

import pytest

from neonctl_local.postgres.clusters import Clusters
from tests.support.clusters import DESIRED, LEDGER, execute, fetch
from tests.support.until import until

pytestmark = [pytest.mark.postgres, pytest.mark.long]

REWRITE = ("VACUUM FULL", "REINDEX SYSTEM app")
"""Gives the system catalogs other files, whose numbers the caches of a server contain."""
FILES = "SELECT string_agg(pg_relation_filepath(oid), ' ' ORDER BY oid) FROM pg_class"


@pytest.fixture
def history() -> bool:
    return False


@pytest.fixture
async def clusters(each_clusters: Clusters) -> Clusters:
    """Clusters of each version."""
    return each_clusters


async def test_catalogs_with_other_files_are_read_in_restored_copies(
    clusters: Clusters, main: str
) -> None:
    await execute(clusters, main, LEDGER)
    await execute(clusters, main, *REWRITE)
    before = await fetch(clusters, main, FILES)
    await clusters.stop(main)
    await clusters.prepare(main, 1)
    for _ in range(3):
        await until(lambda: clusters.prepared(main) == 1)
        await clusters.copy(main, "br-copy")
        await clusters.start("br-copy", DESIRED)
        assert await fetch(clusters, "br-copy", FILES) == before
        assert await fetch(clusters, "br-copy", "SELECT count(*) FROM accounts") == [10]
        await execute(
            clusters, "br-copy", "DROP TABLE transfers", *REWRITE, "CREATE TABLE t (id int)"
        )
        assert await fetch(clusters, "br-copy", FILES) != before
        await clusters.delete("br-copy")
