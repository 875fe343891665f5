"""neon-api, which is synchronous: in this thread, and for 50 at once in as many threads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from neon_api import NeonAPI

from benchmarks.answers import PAGE
from benchmarks.figures import NEON_API
from benchmarks.peers.contender import AT_ONCE, KEY, Contender


class NeonApi(Contender):
    """A client for each thread: the session that it holds is not made to be shared."""

    name = NEON_API

    async def __aenter__(self) -> Self:
        self._clients = threading.local()
        self._threads = ThreadPoolExecutor(AT_ONCE)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._threads.shutdown()

    @property
    def _client(self) -> NeonAPI:
        if not hasattr(self._clients, "client"):
            self._clients.client = NeonAPI(KEY, base_url=f"{self.base_url}/")
        client: NeonAPI = self._clients.client
        return client

    def get(self, _: int = 0) -> object:
        """One operation."""
        return self._client.operation(self.project_id, self.operation_id)

    def page(self) -> object:
        """The first page. There is no next one: the answer's cursor is dropped."""
        return self._client.operations(self.project_id, limit=PAGE)

    async def alone(self, count: int) -> float:
        """See Contender."""
        began = time.perf_counter()
        for _ in range(count):
            self.get()
        return time.perf_counter() - began

    async def at_once(self, count: int) -> float:
        """See Contender."""
        began = time.perf_counter()
        for _ in range(count):
            list(self._threads.map(self.get, range(AT_ONCE)))
        return time.perf_counter() - began

    async def pages(self, count: int) -> float:
        """See Contender."""
        began = time.perf_counter()
        for _ in range(count):
            self.page()
        return time.perf_counter() - began
