"""The checks of the history of all branches."""

import asyncio
import logging
from collections.abc import Mapping
from typing import cast

import pytest

from control_plane.tests.driven import DrivenControlPlane, DrivenProject
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.server.databases import watching
from neonctl_local.server.databases.watching import HistoryKeeper
from neonctl_local.server.tenants.state import TenantState


class FakeClusters:
    """Records the retention of each cluster, and the limit of all history."""

    def __init__(self) -> None:
        self.kept: list[Mapping[str, float]] = []
        self.limits: list[int] = []
        self.checked = asyncio.Event()

    async def keep_history(self, retention: Mapping[str, float]) -> None:
        self.kept.append(retention)
        if len(self.kept) == 1:
            raise OSError("the disk is full")

    async def limit_history(self, limit: int) -> None:
        self.limits.append(limit)
        self.checked.set()


class State:
    """The part of a tenant that the keeper reads."""

    def __init__(self, plane: DrivenControlPlane) -> None:
        self.database = plane.database


async def test_branches_keep_history_for_the_retention_of_their_project(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "HISTORY_INTERVAL", 0.001)
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane, history_retention_seconds=3600)
        other = DrivenProject(plane)
        clusters, states = FakeClusters(), [cast("TenantState", State(plane))]
        keeping = asyncio.create_task(HistoryKeeper(states, cast("Clusters", clusters)).run())
        with caplog.at_level(logging.ERROR):
            await clusters.checked.wait()
        keeping.cancel()
        assert clusters.kept[1] == {project.main: 3600, other.main: 86400}
        assert clusters.limits[0] == watching.HISTORY_BYTES
        assert "the check of the history failed" in caplog.text
