"""The steps of the replacement of a cluster, and their repetition after a crash between two."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import cast

import pytest

from control_plane.tests.driven import DrivenControlPlane
from neonctl_local import ManualClock
from neonctl_local.clock import SECOND
from neonctl_local.engine.work import ReplaceCluster
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.server.tenants.cluster_work import ClusterWork

LATER = 2_000_000_000 * SECOND
"""A time after all changes of the data."""


class CrashError(Exception):
    """The control plane was killed."""


class FakeClusters:
    """Clusters in memory: the content of each id. They crash after ``steps`` changes."""

    keeps_history = False

    def __init__(self, contents: dict[str, str]) -> None:
        self.contents = contents
        self.steps = 100

    def ids(self) -> set[str]:
        return set(self.contents)

    async def copy(self, source: str, target: str) -> None:
        self.contents[target] = self._get(source)
        self._step()

    async def rename(self, id: str, new_id: str) -> None:
        self.contents[new_id] = self._get(id)
        del self.contents[id]
        self._step()

    async def delete(self, *ids: str) -> None:
        for id in ids:
            if self.contents.pop(id, None) is not None:
                self._step()

    async def changed_at(self, id: str) -> datetime:
        self._get(id)
        return datetime(2026, 1, 1, tzinfo=UTC)

    def _get(self, id: str) -> str:
        if id not in self.contents:
            raise ClusterError(f"There are no data of {id}")
        return self.contents[id]

    def _step(self) -> None:
        self.steps -= 1
        if self.steps == 0:
            raise CrashError


@pytest.mark.parametrize("preserved_id", [None, "br-old"])
@pytest.mark.parametrize("source", ["br-1", "br-2"])
@pytest.mark.parametrize("steps", range(1, 5))
async def test_replacement_is_completed_after_a_crash(
    preserved_id: str | None, source: str, steps: int
) -> None:
    clusters = FakeClusters({"br-1": "one", "br-2": "two"})
    expected = clusters.contents[source]
    replacement = ReplaceCluster("br-1", source, at=LATER, preserved_id=preserved_id)

    async def close_connections(_endpoint_id: str) -> None:
        raise AssertionError("no compute is suspended")

    with DrivenControlPlane() as plane:
        work = ClusterWork(
            plane.database, cast("Clusters", clusters), ManualClock(), close_connections
        )
        clusters.steps = steps
        with suppress(CrashError):
            await work.perform(replacement)
        clusters.steps = 100
        await work.perform(replacement)
    preserved = {preserved_id: "one"} if preserved_id else {}
    assert clusters.contents == {"br-1": expected, "br-2": "two"} | preserved
