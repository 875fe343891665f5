"""The state of one tenant: its database, faults, rate limits, and the requests it received."""

from collections import deque
from pathlib import Path
from typing import Final, NamedTuple

from neonctl_async.local.clock import Clock, instant
from neonctl_async.local.engine import api_keys
from neonctl_async.local.server.faults import Faults
from neonctl_async.local.server.limits import Limiter
from neonctl_async.local.server.routes import CREATE_ORGANIZATION_KEY
from neonctl_async.local.settings import RateLimits, Rules
from neonctl_async.local.storage.database import Database

REMEMBERED_REQUESTS: Final = 10_000


class ServedRequest(NamedTuple):
    """A request that came in: its path relative to the base address, and the status answered.

    The status is 0 where the connection was closed without an answer.
    """

    method: str
    path: str
    status: int


class TenantState:
    """A database of its own, with faults and limits of its own."""

    def __init__(
        self, clock: Clock, rules: Rules, limits: RateLimits | None, path: Path | None = None
    ) -> None:
        self.database: Final = Database(path, clock, rules)
        self.faults: Final = Faults()
        self._clock = clock
        self._rules = rules
        self._limits = limits
        self.begin()

    def begin(self) -> None:
        """Nothing has come in yet."""
        self.requests: deque[ServedRequest] = deque(maxlen=REMEMBERED_REQUESTS)
        self.requests_served: int = 0
        limits = self._limits
        self._limiter = None if limits is None else Limiter(limits, CREATE_ORGANIZATION_KEY)

    def note(self, request: ServedRequest) -> None:
        """Remember a request that was served."""
        self.requests.append(request)
        self.requests_served += 1

    def admit(self, account: str, route: str) -> None:
        """Let a request pass. Raises 429 past the limits."""
        if self._limiter is not None:
            self._limiter.admit(account, route, instant(self._clock()))

    def another(self) -> "TenantState":
        """An empty one under the same rules, in memory."""
        return TenantState(self._clock, self._rules, self._limits)

    async def knows(self, authorization: str | None) -> bool:
        """Whether the key that an ``Authorization`` header carries was made here."""
        return await self.database.run(api_keys.is_known, authorization)
