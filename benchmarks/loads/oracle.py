"""The oracle: a client that knows when each operation finishes.

It sends each create as soon as the limits allow, and polls each project when its waits are over.
Its definition:

- A create is due when its branch arrives, in a locked project when its operations are finished.
  Creates go before polls that are due.
- A poll is due for each wait at the end of its last operation.
- One request serves all waits of a project whose ends lie within one second. It is sent at the last
  of these ends, so a wait may be up to one second late.
- Under the limits a poll may be later. It then serves all waits of its project that are over.
- All requests obey the limit of the account and that of their route, as the client's do. All polls
  count as one route. The share of another client is subtracted from the limit of the account.
"""

import bisect

import msgspec

from benchmarks.loads.load import Load
from benchmarks.servers.limits import SlidingWindow

TOGETHER = 1.0
"""The longest time between the ends of two waits that one request serves."""


class Optimum(msgspec.Struct, frozen=True):
    """The requests of the oracle, the end of its last wait, and its worst lateness of a wait."""

    requests: int
    end: float
    delay: float = 0.0
    """The time from the end of the last operation to the end of the last wait."""
    worst: float = 0.0


def optimum(load: Load) -> Optimum:
    """Return the results of the oracle for a load. It has no round trip."""
    return _Oracle(load).run()


class _Oracle:
    """The state of the oracle, which moves from request to request."""

    def __init__(self, load: Load) -> None:
        route = load.settings.per_route_per_second
        self._account = SlidingWindow(load.available, 60.0)
        self._creates = SlidingWindow(route, 1.0)
        self._polls = SlidingWindow(route, 1.0)
        self._is_one_wait = load.is_one_wait
        self._locks_projects = load.settings.locks_projects
        self._queue = sorted(load.branches, key=lambda branch: branch.arrives)
        self._ends: dict[str, list[float]] = {}
        """The ends of the unserved waits of each project, in order."""
        self._requests = 0
        self._end = 0.0
        self._last_finish = 0.0
        self._worst = 0.0

    def run(self) -> Optimum:
        """Send all requests."""
        now = 0.0
        if self._is_one_wait:
            end = max(branch.seconds for branch in self._queue)
            projects = {branch.project_id for branch in self._queue}
            return Optimum(len(projects), end)
        while self._queue or self._ends:
            create_at = self._create_at(now)
            project_id, poll_at = self._next_poll(now)
            now = min(create_at, poll_at)
            if create_at <= poll_at:
                self._create(now)
            else:
                self._poll(project_id, now)
        return Optimum(self._requests, self._end, self._end - self._last_finish, self._worst)

    def _create_at(self, now: float) -> float:
        if not self._queue:
            return float("inf")
        due = max(now, self._queue[0].arrives)
        return _free_at(due, self._creates, self._account)

    def _next_poll(self, now: float) -> tuple[str, float]:
        """Return the project that is polled next, and when."""
        if not self._ends:
            return "", float("inf")
        due, project_id = min((_poll_due(ends), project) for project, ends in self._ends.items())
        return project_id, _free_at(max(now, due), self._polls, self._account)

    def _create(self, now: float) -> None:
        self._send(self._creates, now)
        branch = self._queue.pop(0)
        finishes = now + branch.seconds
        self._last_finish = max(self._last_finish, finishes)
        bisect.insort(self._ends.setdefault(branch.project_id, []), finishes)
        if self._locks_projects:
            self._lock(branch.project_id, finishes)

    def _lock(self, project_id: str, until: float) -> None:
        """Delay the creates of a project."""
        self._queue = sorted(
            (
                msgspec.structs.replace(branch, arrives=max(branch.arrives, until))
                if branch.project_id == project_id
                else branch
                for branch in self._queue
            ),
            key=lambda branch: branch.arrives,
        )

    def _poll(self, project_id: str, now: float) -> None:
        self._send(self._polls, now)
        self._end = now
        ends = self._ends.pop(project_id)
        self._worst = max(self._worst, now - ends[0])
        unserved = [end for end in ends if end > now]
        if unserved:
            self._ends[project_id] = unserved

    def _send(self, route: SlidingWindow, now: float) -> None:
        route.take(now)
        self._account.take(now)
        self._requests += 1


def _poll_due(ends: list[float]) -> float:
    """Return the last end within TOGETHER of the first one."""
    return ends[bisect.bisect_right(ends, ends[0] + TOGETHER) - 1]


def _free_at(due: float, *windows: SlidingWindow) -> float:
    """Return the first time from ``due`` on at which all windows allow a request."""
    return due + max(window.delay(due) for window in windows)
