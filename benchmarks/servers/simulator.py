"""A simulated control plane: operations of given durations, and a record of all requests.

It runs in its own process, so that it does not slow the client down, and does as little as
possible per request. It measures by itself: each request, and the time at which each operation
finishes, by ``time.monotonic()``. On Linux that clock is the same in all processes.

``POST /projects/{id}/branches`` starts the operations that the branch name describes. After its
first word, the name lists the seconds that each operation takes; they run one after another. An
exclamation mark makes an operation fail (``b7 1.5 0.5!``). Requests to ``/control`` also start
operations, and return the report; they are not recorded. ``simulator_process`` is the client side.
"""

import asyncio
import itertools
import math
import re
import sys
import time
from collections import deque
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl

import msgspec

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


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The behaviour of the simulator; None and 0 disable a setting."""

    round_trip: float = 0.0
    """The added latency, in seconds."""
    per_minute: int | None = None
    """The rate limit of the account."""
    per_route_per_second: int | None = None
    """The rate limit of each route."""
    fail_every: int = 0
    """The n in "every n-th response is a 503"."""


class Received(msgspec.Struct, frozen=True, array_like=True):
    """A recorded request."""

    at: float
    route: str
    project_id: str
    status: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All requests, and the time at which each operation finishes."""

    requests: list[Received]
    finishes: dict[str, float]

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

    def record(self, now: float) -> msgspec.Raw:
        """Return the current record, which is encoded once per status."""
        if now >= self.finishes:
            status, since = ("failed" if self.fails else "finished"), self.finishes
        elif now >= self.starts:
            status, since = "running", self.starts
        else:
            status, since = "scheduling", self.created
        encoded = self.encoded.get(status)
        if encoded is None:
            record = {
                "id": self.id,
                "project_id": self.project_id,
                "branch_id": "br-quiet-sun-87654321",
                "action": self.action,
                "status": status,
                "failures_count": 0,
                "created_at": _timestamp(self.created),
                "updated_at": _timestamp(since),
            }
            if now >= self.finishes:
                record["total_duration_ms"] = round((self.finishes - self.starts) * 1000)
            encoded = self.encoded[status] = msgspec.Raw(msgspec.json.encode(record))
        return encoded


class _SlidingWindow:
    """A limit of requests in any ``period`` seconds. Refused requests do not count."""

    def __init__(self, limit: int | None, period: float) -> None:
        self._limit = limit
        self._period = period
        self._taken: deque[float] = deque()

    def delay(self, now: float) -> float:
        """Return the seconds until the limit allows a request."""
        while self._taken and self._taken[0] <= now - self._period:
            self._taken.popleft()
        if self._limit is None or len(self._taken) < self._limit:
            return 0.0
        return self._taken[0] + self._period - now

    def take(self, now: float) -> None:
        """Count a request."""
        self._taken.append(now)


class _ResponseError(Exception):
    """A response with an error status."""

    def __init__(self, status: int, message: str, headers: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class _ControlPlane:
    """The state of the simulator and its responses."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._projects: dict[str, list[_Operation]] = {}
        self._operations: dict[str, _Operation] = {}
        self._requests: list[Received] = []
        self._numbers = itertools.count(1)
        self._account = _SlidingWindow(settings.per_minute, 60.0)
        self._routes: dict[str, _SlidingWindow] = {}

    def respond(self, method: str, target: str, body: bytes) -> bytes:
        """Return the complete response to a request."""
        path, _, query = target.partition("?")
        try:
            if path.startswith(API):
                content = self._api(method, path.removeprefix(API), query, body)
            else:
                content = self._control(path, body)
        except _ResponseError as error:
            message = msgspec.json.encode({"message": str(error)})
            return _http(error.status, message, error.headers)
        return _http(200, content)

    def _control(self, path: str, body: bytes) -> bytes:
        if path == "/control/start":
            now = time.monotonic()
            order = msgspec.json.decode(body, type=Start)
            started = [
                self._start(project_id, now, now, each)
                for project_id, seconds in order.items()
                for each in seconds
            ]
            return msgspec.json.encode([one.record(now) for one in started])
        finishes = {id: one.finishes for id, one in self._operations.items()}
        return msgspec.json.encode(Report(requests=self._requests, finishes=finishes))

    def _api(self, method: str, path: str, query: str, body: bytes) -> bytes:
        now = time.monotonic()
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
        of_route = self._routes.get(route)
        if of_route is None:
            of_route = _SlidingWindow(self.settings.per_route_per_second, 1.0)
            self._routes[route] = of_route
        delay = max(of_route.delay(now), self._account.delay(now))
        if delay > 0:
            headers = f"Retry-After: {math.ceil(delay)}\r\n"
            raise _ResponseError(429, "too many requests", headers)
        of_route.take(now)
        self._account.take(now)
        every = self.settings.fail_every
        if every and (len(self._requests) + 1) % every == 0:
            raise _ResponseError(503, "service unavailable")

    def _create(self, project_id: str, now: float, body: bytes) -> bytes:
        name = msgspec.json.decode(body)["branch"]["name"]
        starts = now
        started: list[_Operation] = []
        for place, word in enumerate(name.split()[1:]):
            seconds = float(word.rstrip("!"))
            one = self._start(project_id, now, starts, seconds, place, fails=word.endswith("!"))
            started.append(one)
            starts = one.finishes
        branch = {
            "id": f"br-{next(self._numbers)}",
            "project_id": project_id,
            "name": name,
            "current_state": "init",
            "created_at": _timestamp(now),
            "updated_at": _timestamp(now),
        }
        operations = [one.record(now) for one in started]
        return msgspec.json.encode({"branch": branch, "operations": operations})

    def _list(self, project_id: str, now: float, query: dict[str, str]) -> bytes:
        stored = self._projects.get(project_id, [])
        end = min(int(query.get("cursor", len(stored))), len(stored))
        start = max(end - int(query.get("limit", 100)), 0)
        page = [one.record(now) for one in reversed(stored[start:end])]
        return msgspec.json.encode({"operations": page, "pagination": {"cursor": str(start)}})

    def _get(self, id: str, now: float) -> bytes:
        if id not in self._operations:
            raise _ResponseError(404, "no such operation")
        return msgspec.json.encode({"operation": self._operations[id].record(now)})

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
        self._projects.setdefault(project_id, []).append(one)
        return one


class _Connection(asyncio.Protocol):
    """An HTTP/1.1 keep-alive connection that handles one request at a time."""

    def __init__(self, plane: _ControlPlane) -> None:
        self._plane = plane
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the transport."""
        del exc
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Respond to each request that has arrived completely."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].decode("latin-1")
            length = re.search(r"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
            total = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < total:
                return
            body, self._buffer = self._buffer[end + 4 : total], self._buffer[total:]
            method, target, _ = head.partition("\r\n")[0].split(" ")
            self._handle(method, target, body)

    def _handle(self, method: str, target: str, body: bytes) -> None:
        one_way = self._plane.settings.round_trip / 2
        if not one_way or not target.startswith(API):
            self._send(self._plane.respond(method, target, body))
            return
        loop = asyncio.get_running_loop()

        def arrive() -> None:
            loop.call_later(one_way, self._send, self._plane.respond(method, target, body))

        loop.call_later(one_way, arrive)

    def _send(self, response: bytes) -> None:
        if self._transport is not None:
            self._transport.write(response)


def _find(method: str, path: str) -> tuple[str, re.Match[str]]:
    for of_method, pattern, route in _ROUTES:
        match = pattern.fullmatch(path)
        if match is not None and method == of_method:
            return route, match
    raise _ResponseError(404, "no such path")


_EPOCH = datetime.now(UTC) - timedelta(seconds=time.monotonic())


def _timestamp(moment: float) -> str:
    return (_EPOCH + timedelta(seconds=moment)).isoformat()


def _http(status: int, content: bytes, headers: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n{headers}\r\n"
    )
    return head.encode() + content


async def serve(settings: Settings) -> None:
    """Print the port and serve until standard input is closed."""
    loop = asyncio.get_running_loop()
    plane = _ControlPlane(settings)
    server = await loop.create_server(lambda: _Connection(plane), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(msgspec.json.decode(sys.argv[1], type=Settings)))
