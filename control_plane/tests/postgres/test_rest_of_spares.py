"""When a copy that was used is restored, on a clock that is not real."""

import asyncio
from unittest.mock import Mock

import pytest

from neonctl_local.postgres.cluster import Cluster
from neonctl_local.postgres.spares import REST, Spares
from tests.support.clock import now

pytestmark = pytest.mark.virtual_time

MAKING = 10.0


class Restored:
    """The times at which copies were restored."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.spares = Spares(self._make, self._restore, self._discard)

    async def _make(self, source: str) -> Cluster:
        del source
        await asyncio.sleep(MAKING)
        made: Cluster = Mock(spec=Cluster, running=True)
        return made

    async def _restore(self, source: str, cluster: Cluster) -> Cluster:
        del source
        self.times.append(now())
        return cluster

    async def _discard(self, cluster: Cluster) -> None:
        raise AssertionError(cluster)

    async def taken(self) -> Cluster:
        """Return a copy that was taken, while another one is ready."""
        self.spares.want("main", 2)
        await asyncio.sleep(2 * MAKING)
        cluster = await self.spares.take("main")
        assert cluster is not None
        return cluster


async def test_copy_rests_while_another_is_ready() -> None:
    restored = Restored()
    taken = await restored.taken()
    given_back = now()
    assert restored.spares.give_back(taken)
    await asyncio.sleep(1)
    assert restored.times == [pytest.approx(given_back + REST)]


async def test_copy_does_not_rest_once_somebody_waits_for_it() -> None:
    restored = Restored()
    taken = await restored.taken()
    given_back = now()
    assert restored.spares.give_back(taken)
    assert await restored.spares.take("main") is not taken
    assert await restored.spares.take("main") is taken
    assert restored.times == [now()] == [given_back]
    await restored.spares.stop()


async def test_copy_that_is_given_back_after_the_stop_is_not_restored() -> None:
    restored = Restored()
    taken = await restored.taken()
    await restored.spares.stop()
    restored.spares.take_all()
    assert not restored.spares.give_back(taken)
