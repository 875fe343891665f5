"""Rate limits for a FakeNeon, as strict as those of Neon."""

from collections import deque

from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.server import Received, Respond, http_response

PER_MINUTE, PER_SECOND = 70, 4
"""The limits of an account and of a route: a tenth of Neon's."""


class StrictLimits:
    """Rate limits in sliding windows that respond with 429. A POST starts an operation.

    The body of a POST is the id of the operation and its duration in seconds.
    """

    def __init__(
        self, fake_neon: FakeNeon, per_minute: int = PER_MINUTE, per_second: int = PER_SECOND
    ) -> None:
        self._platform = fake_neon
        self._per_minute = per_minute
        self._per_second = per_second
        self._account: deque[float] = deque()
        self._routes: dict[tuple[object, ...], deque[float]] = {}
        self.rejected = 0
        self.created: list[str] = []
        self.polls: dict[str, list[float]] = {}
        fake_neon.fault = self.check

    def check(self, request: Received) -> Respond | None:
        """Respond with 429 above a limit. Return None for a poll within the limits."""
        segments = request.path.split("/")
        project_id = segments[4]
        route = (request.method, len(segments), *segments[3::2])
        of_route = self._routes.setdefault(route, deque())
        fits = self.free > 0, _used(of_route, 1.0) < self._per_second
        if not all(fits):
            self.rejected += 1
            return http_response(429, {"message": "too many requests"})
        self._account.append(now())
        of_route.append(now())
        if request.method == "POST":
            return self._create(request, project_id)
        if "/operations" not in request.path:
            return http_response(200, {})
        self.polls.setdefault(project_id, []).append(now())
        return None

    @property
    def free(self) -> int:
        """The number of requests that the account may send now."""
        return self._per_minute - _used(self._account, 60.0)

    def spend(self, requests: int) -> None:
        """Count requests of another client of the account."""
        self._account.extend([now()] * requests)

    def _create(self, request: Received, project_id: str) -> Respond:
        name, seconds = str(request.json()).split()
        self.created.append(name)
        self._platform.start(
            name,
            project_id=project_id,
            states={now(): "running", now() + float(seconds): "finished"},
        )
        return http_response(201, {"operations": [self._platform.record(name)]})


def _used(sent: deque[float], period: float) -> int:
    while sent and sent[0] + period <= now():  # rounded as in the client
        sent.popleft()
    return len(sent)
