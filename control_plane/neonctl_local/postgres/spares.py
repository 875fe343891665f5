"""Started copies of stopped clusters, prepared before they are needed."""

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine

from neonctl_local.postgres.cluster import Cluster
from neonctl_local.postgres.servers.scheduling import Background


class Spares:
    """Keeps the wanted number of spare copies of each source ready.

    ``make`` returns a started copy of a source, or None while the source runs. ``discard`` ends and
    removes a copy. Copies are made one at a time, so that they delay other work little.
    """

    def __init__(
        self,
        make: Callable[[str], Awaitable[Cluster | None]],
        discard: Callable[[Cluster], Coroutine[None, None, None]],
    ) -> None:
        self._make = make
        self._discard = discard
        self._wanted: dict[str, int] = {}
        self._ready: defaultdict[str, deque[Cluster]] = defaultdict(deque)
        self._versions: defaultdict[str, int] = defaultdict(int)
        self._background = Background()
        self._unavailable: set[str] = set()
        self._filling = False

    def ready(self, source: str) -> int:
        """Return the number of copies of a source that are ready."""
        return len(self._ready[source])

    def want(self, source: str, count: int) -> None:
        """Keep ``count`` copies of a source ready from now on."""
        self._wanted[source] = count
        while len(self._ready[source]) > count:
            self._background.spawn(self._discard(self._ready[source].pop()))
        self.fill()

    def take(self, source: str) -> Cluster | None:
        """Return a copy that is ready, and replace it in the background."""
        ready = self._ready[source]
        taken: Cluster | None = None
        while ready and taken is None:
            candidate = ready.popleft()
            if candidate.running:
                taken = candidate
            else:
                self._background.spawn(self._discard(candidate))
        self.fill()
        return taken

    def invalidate(self, source: str, *, forget: bool = False) -> None:
        """Discard the copies of a source whose data change. ``forget`` wants no further copies."""
        self._versions[source] += 1
        while self._ready[source]:
            self._background.spawn(self._discard(self._ready[source].pop()))
        if forget:
            self._wanted.pop(source, None)

    def fill(self) -> None:
        """Make the copies that are missing, in the background."""
        self._unavailable.clear()
        if not self._filling and self._sources():
            self._filling = True
            self._background.spawn(self._fill())

    async def stop(self) -> None:
        """End the work in the background. Copies that are ready remain."""
        self._wanted.clear()
        await self._background.stop()

    def take_all(self) -> list[Cluster]:
        """Return all copies that are ready."""
        taken = [cluster for ready in self._ready.values() for cluster in ready]
        self._ready.clear()
        return taken

    def _missing(self, source: str) -> bool:
        return len(self._ready[source]) < self._wanted.get(source, 0)

    async def _fill(self) -> None:
        """Make one copy of each source after the other, until none is missing."""
        try:
            while sources := self._sources():
                for source in sources:
                    await self._add(source)
        finally:
            self._filling = False

    def _sources(self) -> list[str]:
        missing = (source for source in self._wanted if self._missing(source))
        return [source for source in missing if source not in self._unavailable]

    async def _add(self, source: str) -> None:
        version = self._versions[source]
        cluster = await self._make(source)
        if cluster is None:
            self._unavailable.add(source)
        elif version == self._versions[source] and self._missing(source):
            self._ready[source].append(cluster)
        else:
            await self._discard(cluster)
