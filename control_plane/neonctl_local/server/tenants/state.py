"""The state of one tenant: its database, faults, rate limits, and the requests it received."""

from collections import deque
from datetime import datetime
from pathlib import Path
from typing import Final

from neonctl_local.clock import Clock, Instant, instant, utc_now
from neonctl_local.engine import api_keys
from neonctl_local.engine.api_keys import Principal
from neonctl_local.server.faults import Faults
from neonctl_local.server.limits import Limiter
from neonctl_local.server.lists import ShortLists
from neonctl_local.server.request_history import AnsweredRequest, RequestHistory, Usage
from neonctl_local.server.served_request import ServedRequest
from neonctl_local.server.tenants.databases import TenantDatabases
from neonctl_local.settings import RateLimits, Rules
from neonctl_local.storage.database import Database

REMEMBERED_REQUESTS: Final = 10_000


class TenantState:
    """The database, the faults, the limits and the recorded requests of one tenant."""

    def __init__(
        self,
        clock: Clock,
        rules: Rules,
        limits: RateLimits | None,
        path: Path | None = None,
        *,
        durable: bool = False,
    ) -> None:
        self.database: Final = Database(path, clock, rules, durable=durable)
        self.faults: Final = Faults()
        self.history: Final = RequestHistory()
        self.short_lists: Final = ShortLists()
        self.databases: TenantDatabases | None = None
        self._clock = clock
        self._rules = rules
        self._limits = limits
        self.clear_requests()

    def use_rules(self, rules: Rules) -> None:
        """Replace the settings, once the properties of Postgres are known."""
        self._rules = self.database.rules = rules

    @property
    def clock(self) -> Clock:
        """The clock of the local control plane."""
        return self._clock

    def utc_now(self) -> datetime:
        """Return the time of the local control plane."""
        return self._clock()

    def now(self) -> Instant:
        """Return the time of the local control plane as an instant."""
        return instant(self._clock())

    @property
    def follows_wall_clock(self) -> bool:
        """True unless a test or another program controls the clock."""
        return self._clock is utc_now

    def clear_requests(self) -> None:
        """Forget all received requests, including those counted for the rate limits."""
        self.requests: deque[ServedRequest] = deque(maxlen=REMEMBERED_REQUESTS)
        self.requests_served: int = 0
        self.history.clear()
        limits = self._limits
        self._limiter = None if limits is None else Limiter(limits)

    def note(
        self,
        request: ServedRequest,
        *,
        at: Instant,
        seconds: float,
        principal: Principal | None = None,
        has_fault: bool = False,
    ) -> None:
        """Record a request, with the time at which it was received, and how long it took."""
        self.requests.append(request)
        self.requests_served += 1
        self.history.add(
            AnsweredRequest(
                number=self.requests_served,
                at=at,
                method=request.method,
                path=request.path,
                status=request.status,
                seconds=seconds,
                account="" if principal is None else principal.account,
                key_id=None if principal is None else principal.key_id,
                has_fault=has_fault,
            )
        )

    def admit(self, account: str, route: str) -> None:
        """Admit a request. Raise 429 if it exceeds the rate limits."""
        now = self.now()
        if self._limiter is not None:
            self._limiter.admit(account, route, now)
        self.history.count(account, route, now)

    @property
    def enforces_limits(self) -> bool:
        """True if requests above the rate limits are rejected."""
        return self._limits is not None

    def usage(self, account: str) -> Usage:
        """Return how much of the rate limits an account uses, whether or not they are enforced."""
        return self.history.usage(account, self._limits or RateLimits(), self.now())

    def new_tenant(self) -> "TenantState":
        """Return an empty state with the same settings, in memory."""
        return TenantState(self._clock, self._rules, self._limits)

    async def issued(self, authorization: str | None) -> bool:
        """Return whether this tenant issued the key of an ``Authorization`` header."""
        return await self.database.read(api_keys.is_known, authorization)
