"""The state and the responses of the simulated control plane. Pure: no sockets, no event loop.

``POST /projects/{id}/branches`` starts the operations that the branch name describes. After its
first word, the name lists the seconds that each operation takes. Words run one after another.
A plus sign separates operations that run in parallel. An exclamation mark makes an operation fail:
``b7 1.5+2 0.5!`` starts two operations, and when both have finished, a third one that fails.
"""

import itertools
import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import NamedTuple
from urllib.parse import parse_qsl

import msgspec

from benchmarks.servers.limits import SlidingWindow, SteadyClient

API = "/api/v2"
CREATE = "POST branches"
GET = "GET operation"
LIST = "GET operations"

_ROUTES = (
    ("POST", re.compile(r"/projects/([^/]+)/branches"), CREATE),
    ("GET", re.compile(r"/projects/([^/]+)/operations/([^/]+)"), GET),
    ("GET", re.compile(r"/projects/([^/]+)/operations"), LIST),
)
_ACTIONS = ("create_branch", "start_compute")
_HISTORY_INTERVAL = 60.0
"""The seconds between two branches of the history of a project."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The behaviour of the simulator; None and 0 disable a setting."""

    round_trip: float = 0.0
    """The added latency, in seconds."""
    jitter: float = 0.0
    """The share by which a round trip varies at random, in both directions."""
    per_minute: int | None = None
    """The rate limit of the account."""
    per_route_per_second: int | None = None
    """The rate limit of each route."""
    fail_every: int = 0
    """The n in "every n-th response is a 503"."""
    outage: tuple[float, float] = (0.0, 0.0)
    """The seconds since the start from and until which every response is a 503."""
    has_total_duration: bool = True
    """True if finished operations have ``total_duration_ms``, which recorded responses lack."""
    has_whole_seconds: bool = False
    """True if timestamps are truncated to whole seconds, as Neon's are."""
    clock_offsets: tuple[tuple[float, float], ...] = ()
    """Pairs of seconds since the start, and the clock's offset from then on, in seconds."""
    history: tuple[str, ...] = ()
    """Branches that each project already has, oldest first: names without their first word."""
    others_per_second: float = 0.0
    """The requests per second of another client of the account, which started a minute ago."""
    spent: int = 0
    """The requests that another client has sent evenly in the minute before the start."""
    locks_projects: bool = False
    """True if a creation gets a 423 while an operation of its project is unfinished."""


class Received(msgspec.Struct, frozen=True, array_like=True):
    """A recorded request."""

    at: float
    route: str
    project_id: str
    status: int


class Lifetime(msgspec.Struct, frozen=True, array_like=True):
    """The times at which a branch was created and its last operation finishes."""

    created: float
    finishes: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All requests, and the time at which each operation finishes."""

    requests: list[Received]
    finishes: dict[str, float]
    branches: dict[str, Lifetime] = {}
    """The lifetime of each branch, by name."""

    def count(self, *routes: str, status: int | None = None) -> int:
        """Return the number of requests, of these routes and this status if given."""
        return sum(
            (not routes or one.route in routes) and status in {None, one.status}
            for one in self.requests
        )

    def polls(self) -> dict[str, list[float]]:
        """Return the times at which each project's operations were polled."""
        found: dict[str, list[float]] = {}
        for one in self.requests:
            if one.route != CREATE:
                found.setdefault(one.project_id, []).append(one.at)
        return found


Start = dict[str, list[float]]
"""An order to start operations at once: the seconds of each, by project."""


class Reply(NamedTuple):
    """A response of the simulator."""

    status: int
    headers: dict[str, str]
    body: bytes


class _Operation(msgspec.Struct, kw_only=True):
    """An operation that is scheduled until ``starts`` and runs until ``finishes``."""

    id: str
    project_id: str
    action: str
    created: float
    starts: float
    finishes: float
    fails: bool
    encoded: dict[str, msgspec.Raw] = {}
    """The record by status."""


class _ResponseError(Exception):
    """A response with an error status."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


class ControlPlane:
    """The state of the simulator and its responses.

    ``clock`` returns the current time in seconds, and ``epoch`` is the time of day at its zero.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float], epoch: datetime) -> None:
        self.settings = settings
        self._clock = clock
        self._epoch = epoch
        self._started = clock()
        self._projects: dict[str, list[_Operation]] = {}
        self._operations: dict[str, _Operation] = {}
        self._branches: dict[str, Lifetime] = {}
        self._requests: list[Received] = []
        self._numbers = itertools.count(1)
        self._account = SlidingWindow(settings.per_minute, 60.0)
        self._others = SteadyClient(settings.others_per_second, self._started - 60.0)
        self._routes: dict[str, SlidingWindow] = {}
        for number in range(settings.spent):
            self._account.take(self._started - 60.0 * (1 - number / settings.spent))

    def respond(self, method: str, target: str, body: bytes) -> Reply:
        """Return the response to a request, which arrives now."""
        path, _, query = target.partition("?")
        try:
            if path.startswith(API):
                content = self._api(method, path.removeprefix(API), query, body)
            else:
                content = self._control(path, body)
        except _ResponseError as error:
            message = msgspec.json.encode({"message": str(error)})
            return Reply(error.status, self._headers() | error.headers, message)
        return Reply(200, self._headers(), content)

    def start(self, seconds_by_project: Start) -> bytes:
        """Start operations that take these seconds, and return their records as JSON."""
        now = self._clock()
        started = [
            self._start(project_id, now, now, each)
            for project_id, seconds in seconds_by_project.items()
            for each in seconds
        ]
        return msgspec.json.encode([self._record(one, now) for one in started])

    def report(self) -> Report:
        """Return the report of everything so far."""
        finishes = {id: one.finishes for id, one in self._operations.items()}
        return Report(requests=self._requests, finishes=finishes, branches=self._branches)

    def _control(self, path: str, body: bytes) -> bytes:
        if path == "/control/start":
            return self.start(msgspec.json.decode(body, type=Start))
        return msgspec.json.encode(self.report())

    def _api(self, method: str, path: str, query: str, body: bytes) -> bytes:
        now = self._clock()
        route, match = _find(method, path)
        project_id = match[1]
        status = 200
        try:
            self._check(route, now)
            if route == CREATE:
                return self._create(project_id, now, body)
            if route == LIST:
                return self._list(project_id, now, dict(parse_qsl(query)))
            return self._get(match[2], now)
        except _ResponseError as error:
            status = error.status
            raise
        finally:
            self._requests.append(Received(now, route, project_id, status))

    def _check(self, route: str, now: float) -> None:
        self._others.send_until(now, self._account)
        of_route = self._routes.get(route)
        if of_route is None:
            of_route = SlidingWindow(self.settings.per_route_per_second, 1.0)
            self._routes[route] = of_route
        delay = max(of_route.delay(now), self._account.delay(now))
        if delay > 0:
            headers = {"Retry-After": str(math.ceil(delay))}
            raise _ResponseError(429, "too many requests", headers)
        of_route.take(now)
        self._account.take(now)
        begin, end = self.settings.outage
        if begin <= now - self._started < end:
            raise _ResponseError(503, "service unavailable")
        every = self.settings.fail_every
        if every and (len(self._requests) + 1) % every == 0:
            raise _ResponseError(503, "service unavailable")

    def _create(self, project_id: str, now: float, body: bytes) -> bytes:
        if self.settings.locks_projects:
            self._check_not_locked(project_id, now)
        name = msgspec.json.decode(body)["branch"]["name"]
        started = self._start_all(project_id, now, name.split()[1:])
        finishes = max((one.finishes for one in started), default=now)
        self._branches[name] = Lifetime(now, finishes)
        branch = {
            "id": f"br-{next(self._numbers)}",
            "project_id": project_id,
            "name": name,
            "current_state": "init",
            "created_at": self._timestamp(now),
            "updated_at": self._timestamp(now),
        }
        operations = [self._record(one, now) for one in started]
        return msgspec.json.encode({"branch": branch, "operations": operations})

    def _check_not_locked(self, project_id: str, now: float) -> None:
        if any(one.finishes > now for one in self._stored(project_id)):
            raise _ResponseError(
                423,
                "project already has running conflicting operations, scheduling of new ones is"
                " prohibited",
            )

    def _list(self, project_id: str, now: float, query: dict[str, str]) -> bytes:
        stored = self._stored(project_id)
        end = min(int(query.get("cursor", len(stored))), len(stored))
        start = max(end - int(query.get("limit", 100)), 0)
        page = [self._record(one, now) for one in reversed(stored[start:end])]
        return msgspec.json.encode({"operations": page, "pagination": {"cursor": str(start)}})

    def _get(self, id: str, now: float) -> bytes:
        if id not in self._operations:
            raise _ResponseError(404, "no such operation")
        return msgspec.json.encode({"operation": self._record(self._operations[id], now)})

    def _stored(self, project_id: str) -> list[_Operation]:
        """Return the operations of a project, which has its history from the first use on."""
        if project_id not in self._projects:
            self._projects[project_id] = []
            for age, words in enumerate(reversed(self.settings.history), 1):
                created = self._started - age * _HISTORY_INTERVAL
                self._start_all(project_id, created, words.split())
            self._projects[project_id].sort(key=lambda one: one.created)
        return self._projects[project_id]

    def _start_all(self, project_id: str, now: float, words: list[str]) -> list[_Operation]:
        """Start the operations of a branch."""
        started: list[_Operation] = []
        starts = now
        for word in words:
            together = [
                self._start(
                    project_id,
                    now,
                    starts,
                    float(text.rstrip("!")),
                    place,
                    fails=text.endswith("!"),
                )
                for place, text in enumerate(word.split("+"), len(started))
            ]
            started += together
            starts = max(one.finishes for one in together)
        return started

    def _start(
        self,
        project_id: str,
        now: float,
        starts: float,
        seconds: float,
        place: int = 0,
        *,
        fails: bool = False,
    ) -> _Operation:
        one = _Operation(
            id=f"{next(self._numbers):08x}-0000-4000-8000-000000000000",
            project_id=project_id,
            action=_ACTIONS[place % len(_ACTIONS)],
            created=now,
            starts=starts,
            finishes=starts + seconds,
            fails=fails,
        )
        self._operations[one.id] = one
        self._stored(project_id).append(one)
        return one

    def _record(self, one: _Operation, now: float) -> msgspec.Raw:
        """Return the current record of an operation, which is encoded once per status."""
        if now >= one.finishes:
            status, since = ("failed" if one.fails else "finished"), one.finishes
        elif now >= one.starts:
            status, since = "running", one.starts
        else:
            status, since = "scheduling", one.created
        encoded = one.encoded.get(status)
        if encoded is None:
            record = {
                "id": one.id,
                "project_id": one.project_id,
                "branch_id": "br-quiet-sun-87654321",
                "action": one.action,
                "status": status,
                "failures_count": 0,
                "created_at": self._timestamp(one.created),
                "updated_at": self._timestamp(since),
            }
            if now >= one.finishes and self.settings.has_total_duration:
                record["total_duration_ms"] = round((one.finishes - one.starts) * 1000)
            encoded = one.encoded[status] = msgspec.Raw(msgspec.json.encode(record))
        return encoded

    def _headers(self) -> dict[str, str]:
        date = self._time_of_day(self._clock()).replace(microsecond=0)
        return {"Content-Type": "application/json", "Date": format_datetime(date, usegmt=True)}

    def _timestamp(self, moment: float) -> str:
        time_of_day = self._time_of_day(moment)
        if self.settings.has_whole_seconds:
            time_of_day = time_of_day.replace(microsecond=0)
        return time_of_day.isoformat()

    def _time_of_day(self, moment: float) -> datetime:
        """Return the time of day that the clock of the service shows at a moment."""
        offset = 0.0
        for since, seconds in self.settings.clock_offsets:
            if moment - self._started >= since:
                offset = seconds
        return self._epoch + timedelta(seconds=moment + offset)


def _find(method: str, path: str) -> tuple[str, re.Match[str]]:
    for of_method, pattern, route in _ROUTES:
        match = pattern.fullmatch(path)
        if match is not None and method == of_method:
            return route, match
    raise _ResponseError(404, "no such path")
