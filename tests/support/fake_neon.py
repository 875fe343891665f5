"""A fake API whose operations finish at scheduled times, for tests of waiting."""

import asyncio
import re
from collections.abc import Callable
from datetime import timedelta
from functools import cached_property
from urllib.parse import parse_qs, urlsplit

from neonctl_async import NeonClient
from tests.support.records import EPOCH, PROJECT, JsonObject, client_of, operation_json
from tests.support.server import MisbehavingServer, Received, Respond, http_response

Fault = Callable[[Received], Respond | None]


class FakeNeon(MisbehavingServer):
    """A server that lists operations, and returns single ones.

    Times are those of the event loop, in seconds. A ``fault`` may replace the response to a
    request.
    """

    def __init__(self) -> None:
        super().__init__(self._response_to)
        self._operations: dict[str, tuple[str, dict[float, str], JsonObject]] = {}
        self.fault: Fault = lambda _request: None
        self.hidden: set[str] = set()
        """The ids of operations that are missing from lists."""
        self.headers: dict[str, str] = {}
        """The headers of successful responses."""

    def start(
        self,
        id: str,
        ends: float = 1.0,
        status: str = "finished",
        *,
        project_id: str = PROJECT,
        states: dict[float, str] | None = None,
        **more: object,
    ) -> None:
        """Add an operation that runs until ``ends``, and then has the status ``status``.

        ``states`` maps times to statuses instead. ``more`` are further fields of the record.
        """
        timeline = states or {0.0: "running", ends: status}
        self._operations[id] = (project_id, timeline, more)

    @cached_property
    def client(self) -> NeonClient:
        """A client with the default settings and without rate limits."""
        return client_of(self)

    @property
    def gets(self) -> int:
        """The number of requests for single operations."""
        return sum(not request.path.endswith("/operations") for request in self.received)

    @property
    def pages(self) -> list[int]:
        """The page sizes of all requests for lists."""
        return [
            int(parse_qs(urlsplit(request.target).query)["limit"][0])
            for request in self.received
            if request.path.endswith("/operations")
        ]

    def record(self, id: str) -> JsonObject:
        """Return the current record of an operation."""
        project_id, timeline, more = self._operations[id]
        now = asyncio.get_running_loop().time()
        at = max(time for time in timeline if time <= now)
        duration = min(now, max(timeline)) - min(timeline)
        return operation_json(
            id,
            timeline[at],
            project_id=project_id,
            at=at,
            **{
                "created_at": (EPOCH + timedelta(seconds=min(timeline))).isoformat(),
                "total_duration_ms": int(duration * 1000),
                **more,
            },
        )

    def _response_to(self, request: Received) -> Respond:
        fault = self.fault(request)
        return self.response_to(request) if fault is None else fault

    def response_to(self, request: Received) -> Respond:
        """Return the response without a fault."""
        match = re.fullmatch(r"/api/v2/projects/([^/]+)/operations(?:/([^/]+))?", request.path)
        if match is None:
            return http_response(404, {"message": "no such path"})
        project_id, id = match.groups()
        if id is not None:
            if id not in self._operations:
                return http_response(404, {"message": "operation not found"})
            return http_response(200, {"operation": self.record(id)}, headers=self.headers)
        query = parse_qs(urlsplit(request.target).query)
        start = int(query.get("cursor", ["0"])[0])
        end = start + int(query["limit"][0])
        listed = [
            id
            for id, (project, _, _) in reversed(self._operations.items())
            if project == project_id and id not in self.hidden
        ]
        page = [self.record(id) for id in listed[start:end]]
        pagination = {"cursor": str(end)} if end < len(listed) else {}
        content = {"operations": page, "pagination": pagination}
        return http_response(200, content, headers=self.headers)
