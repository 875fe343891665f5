"""A control plane for benchmarks of waiting: operations of set durations, counted requests.

It runs in a process of its own, so that it neither slows the client down nor shares its clock's
hiccups, and does as little as it can for a request. What it measures, it measures itself: each
request it answered and the moment each operation ended, in seconds of ``time.monotonic()``, which
on Linux is one clock for all processes.

``POST /projects/{id}/branches`` starts operations as the name of the branch says: after its first
word, the seconds that each takes, one after another as those of a branch and its compute do, with
an exclamation mark where it fails (``b7 1.5 0.5!``). Paths under ``/control`` start operations,
too, and report; they are not counted. The client's end of it is ``scenario_server``.
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
    """How the server behaves; times are in seconds, None and 0 turn a thing off."""

    round_trip: float = 0.0
    per_minute: int | None = None
    per_route_per_second: int | None = None
    retry_after: bool = True
    fail_every: int = 0
    """Every so manieth answer is a 503."""


class Received(msgspec.Struct, frozen=True, array_like=True):
    """A request as the server saw it."""

    at: float
    route: str
    project_id: str
    status: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that the server saw: its requests, and when each operation ended or will end."""

    requests: list[Received]
    ends: dict[str, float]

    def count(self, *routes: str, status: int | None = None, project_id: str | None = None) -> int:
        """How many requests there were: all, or those of these routes, status and project."""
        return sum(
            (not routes or one.route in routes)
            and status in {None, one.status}
            and project_id in {None, one.project_id}
            for one in self.requests
        )

    def looks(self) -> dict[str, list[float]]:
        """When each project's operations were looked at."""
        found: dict[str, list[float]] = {}
        for one in self.requests:
            if one.route != CREATE:
                found.setdefault(one.project_id, []).append(one.at)
        return found


Start = dict[str, list[float]]
"""Operations to start now, outside the API and its counts: the seconds of each, by project."""


class _Running:
    """An operation, which is scheduled until ``begins`` and runs until ``ends``."""

    __slots__ = ("_action", "_created", "_encoded", "_end", "_id", "_project_id", "begins", "ends")

    def __init__(
        self,
        id: str,
        project_id: str,
        action: str,
        *,
        created: float,
        begins: float,
        ends: float,
        fails: bool,
    ) -> None:
        self._end = "failed" if fails else "finished"
        self._id = id
        self._project_id = project_id
        self._action = action
        self._created = created
        self._encoded: dict[str, msgspec.Raw] = {}
        self.begins = begins
        self.ends = ends

    def record(self, now: float) -> msgspec.Raw:
        """The record as it is now, encoded once a status."""
        if now >= self.ends:
            status, since = self._end, self.ends
        elif now >= self.begins:
            status, since = "running", self.begins
        else:
            status, since = "scheduling", self._created
        encoded = self._encoded.get(status)
        if encoded is None:
            record = {
                "id": self._id,
                "project_id": self._project_id,
                "branch_id": "br-quiet-sun-87654321",
                "action": self._action,
                "status": status,
                "failures_count": 0,
                "created_at": _wall(self._created),
                "updated_at": _wall(since),
            }
            if now >= self.ends:
                record["total_duration_ms"] = round((self.ends - self.begins) * 1000)
            encoded = self._encoded[status] = msgspec.Raw(msgspec.json.encode(record))
        return encoded


class _SlidingWindow:
    """At most ``limit`` requests in any ``period`` seconds; refused ones do not count."""

    def __init__(self, limit: int | None, period: float) -> None:
        self._limit = limit
        self._period = period
        self._taken: deque[float] = deque()

    def delay(self, now: float) -> float:
        """Seconds until a request fits, 0 if one fits now."""
        while self._taken and self._taken[0] <= now - self._period:
            self._taken.popleft()
        if self._limit is None or len(self._taken) < self._limit:
            return 0.0
        return self._taken[0] + self._period - now

    def take(self, now: float) -> None:
        """Count a request."""
        self._taken.append(now)


class _RefusedError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, message: str, headers: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class _Plane:
    """The state of the server, and its answers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._projects: dict[str, list[_Running]] = {}
        self._operations: dict[str, _Running] = {}
        self._requests: list[Received] = []
        self._numbers = itertools.count(1)
        self._account = _SlidingWindow(settings.per_minute, 60.0)
        self._routes: dict[str, _SlidingWindow] = {}

    def answer(self, method: str, target: str, body: bytes) -> bytes:
        """The whole answer to a request that has arrived just now."""
        path, _, query = target.partition("?")
        try:
            if path.startswith(API):
                content = self._of_api(method, path.removeprefix(API), query, body)
            else:
                content = self._of_control(path, body)
        except _RefusedError as refused:
            message = msgspec.json.encode({"message": str(refused)})
            return _http(refused.status, message, refused.headers)
        return _http(200, content)

    def _of_control(self, path: str, body: bytes) -> bytes:
        if path == "/control/start":
            now = time.monotonic()
            order = msgspec.json.decode(body, type=Start)
            started = [
                self._start(project_id, now, now, each)
                for project_id, seconds in order.items()
                for each in seconds
            ]
            return msgspec.json.encode([one.record(now) for one in started])
        ends = {id: one.ends for id, one in self._operations.items()}
        return msgspec.json.encode(Report(requests=self._requests, ends=ends))

    def _of_api(self, method: str, path: str, query: str, body: bytes) -> bytes:
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
        except _RefusedError as refused:
            status = refused.status
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
            headers = f"Retry-After: {math.ceil(delay)}\r\n" if self.settings.retry_after else ""
            raise _RefusedError(429, "too many requests", headers)
        of_route.take(now)
        self._account.take(now)
        every = self.settings.fail_every
        if every and (len(self._requests) + 1) % every == 0:
            raise _RefusedError(503, "not now")

    def _create(self, project_id: str, now: float, body: bytes) -> bytes:
        asked = msgspec.json.decode(body)
        begins = now
        started: list[_Running] = []
        name = asked["branch"]["name"]
        for place, word in enumerate(name.split()[1:]):
            seconds = float(word.rstrip("!"))
            one = self._start(project_id, now, begins, seconds, place, fails=word.endswith("!"))
            started.append(one)
            begins = one.ends
        branch = {
            "id": f"br-{next(self._numbers)}",
            "project_id": project_id,
            "name": name,
            "current_state": "init",
            "created_at": _wall(now),
            "updated_at": _wall(now),
        }
        operations = [one.record(now) for one in started]
        return msgspec.json.encode({"branch": branch, "operations": operations})

    def _list(self, project_id: str, now: float, query: dict[str, str]) -> bytes:
        stored = self._projects.get(project_id, [])
        end = min(int(query.get("cursor", len(stored))), len(stored))
        begin = max(end - int(query.get("limit", 100)), 0)
        page = [one.record(now) for one in reversed(stored[begin:end])]
        return msgspec.json.encode({"operations": page, "pagination": {"cursor": str(begin)}})

    def _get(self, id: str, now: float) -> bytes:
        if id not in self._operations:
            raise _RefusedError(404, "no such operation")
        return msgspec.json.encode({"operation": self._operations[id].record(now)})

    def _start(
        self,
        project_id: str,
        now: float,
        begins: float,
        seconds: float,
        place: int = 0,
        *,
        fails: bool = False,
    ) -> _Running:
        id = f"{next(self._numbers):08x}-0000-4000-8000-000000000000"
        action = _ACTIONS[place % len(_ACTIONS)]
        ends = begins + seconds
        one = _Running(id, project_id, action, created=now, begins=begins, ends=ends, fails=fails)
        self._operations[id] = one
        self._projects.setdefault(project_id, []).append(one)
        return one


class _Connection(asyncio.Protocol):
    """HTTP/1.1 with kept-alive connections, a request at a time."""

    def __init__(self, plane: _Plane) -> None:
        self._plane = plane
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the connection go."""
        del exc
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Answer each request that has arrived as a whole."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].decode("latin-1")
            length = re.search(r"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
            total = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < total:
                return
            body, self._buffer = self._buffer[end + 4 : total], self._buffer[total:]
            method, target, _ = head.partition("\r\n")[0].split(" ")
            self._take(method, target, body)

    def _take(self, method: str, target: str, body: bytes) -> None:
        one_way = self._plane.settings.round_trip / 2
        if not one_way or not target.startswith(API):
            self._send(self._plane.answer(method, target, body))
            return
        loop = asyncio.get_running_loop()

        def arrive() -> None:
            loop.call_later(one_way, self._send, self._plane.answer(method, target, body))

        loop.call_later(one_way, arrive)

    def _send(self, answer: bytes) -> None:
        if self._transport is not None:
            self._transport.write(answer)


def _find(method: str, path: str) -> tuple[str, re.Match[str]]:
    for of_method, pattern, route in _ROUTES:
        match = pattern.fullmatch(path)
        if match is not None and method == of_method:
            return route, match
    raise _RefusedError(404, "no such path")


_EPOCH = datetime.now(UTC) - timedelta(seconds=time.monotonic())


def _wall(moment: float) -> str:
    return (_EPOCH + timedelta(seconds=moment)).isoformat()


def _http(status: int, content: bytes, headers: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n{headers}\r\n"
    )
    return head.encode() + content


async def serve(settings: Settings) -> None:
    """Serve on a free port, told on standard output, until standard input ends."""
    loop = asyncio.get_running_loop()
    plane = _Plane(settings)
    server = await loop.create_server(lambda: _Connection(plane), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(msgspec.json.decode(sys.argv[1], type=Settings)))
